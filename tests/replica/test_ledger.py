from __future__ import annotations

import itertools
import random
import sqlite3
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from replica.clocks import MachineClock
from replica.spending.ledger import Ledger, LedgerError, Mark
from replica.spending.limit import Limit
from replica.spending.quota import Quota
from replica.spending.spent import Spent

ROOT = Path(__file__).parents[2]

# Spends all that it may, evaluation after evaluation, and says so after it was allowed to: each
# line is a request.
SPEND = """
import os, random, sys
from replica.budget import Budget
from replica.spending.account import Account
from replica.spending.ledger import Ledger
from replica.spending.limit import Limit
from replica.spending.quota import Quota

path, first, seed = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
chance, now = random.Random(seed), 0.0
ledger = Ledger(path)
limits = [Limit.parse("11 requests per 4s"), Limit.parse("30 items per 3s")]
quota = Quota(limits, time=lambda: now, ledger=ledger, service="s")
account = Account(Budget(20, 4, 1.0), quota=quota, query="q", ledger=ledger)
for evaluation in range(first, first + 300):
    now = float(evaluation)
    account.begin(evaluation)
    while account.take(items := chance.randint(1, 6), 1):
        os.write(1, f"{evaluation} {items}\\n".encode())
"""


def started(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1
    )


def test_killed_at_any_moment_it_never_spends_anything_twice(tmp_path: Path) -> None:
    chance = random.Random(7)
    seen: list[tuple[int, int]] = []
    first = 0
    for run in range(6):
        process = started("-c", SPEND, tmp_path / "spending.db", first, run)
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(chance.randint(1, 60))]
        process.kill()
        # What was allowed but not read yet was sent, too.
        assert process.stderr is not None
        rest, errors = process.stdout.read(), process.stderr.read()
        process.wait()
        assert not errors
        lines += rest.splitlines()
        seen += [tuple(map(int, line.split())) for line in lines]
        # As from a checkpoint: some evaluations are done again.
        first = max(0, seen[-1][0] - 2)
    items: defaultdict[int, int] = defaultdict(int)
    requests: defaultdict[int, int] = defaultdict(int)
    for evaluation, count in seen:
        items[evaluation] += count
        requests[evaluation] += 1
    assert max(items.values()) <= 20
    assert max(requests.values()) <= 4
    last = max(items)
    for start in range(last + 1):
        assert sum(requests[each] for each in range(start, start + 4)) <= 11
        assert sum(items[each] for each in range(start, start + 3)) <= 30
    assert len(seen) > 60
    ledger = Ledger(tmp_path / "spending.db")
    mark = ledger.mark("s", "q")
    assert mark is not None
    assert mark.evaluation >= last
    ledger.close()


TAKE_ALL = """
import sys
from replica.spending.ledger import Ledger
from replica.spending.limit import Limit
from replica.spending.quota import Quota

print("ready", flush=True)
sys.stdin.readline()
ledger = Ledger(sys.argv[1], longest_wait=30.0)
limits = [Limit.parse("40 requests per 1h"), Limit.parse("1000 items per 1h")]
quota = Quota(limits, ledger=ledger, service="s")
print(sum(iter(lambda: quota.take(3, 1), False)))
"""


def test_processes_that_share_a_file_take_exactly_what_is_allowed(tmp_path: Path) -> None:
    command = [sys.executable, "-c", TAKE_ALL, str(tmp_path / "spending.db")]
    pipe = subprocess.PIPE
    processes = [
        subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    results = [process.communicate() for process in processes]
    assert [errors for _, errors in results] == ["", "", ""]
    assert sum(int(output) for output, _ in results) == 40


def quota_on(ledger: Ledger, now: float = 0.0, limit: str = "3 requests per 1m") -> Quota:
    return Quota([Limit.parse(limit)], time=lambda: now, ledger=ledger, service="s")


def test_what_was_spent_is_known_to_whoever_comes_after(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "spending.db")
    assert quota_on(first).take(5, 2)
    second = Ledger(tmp_path / "spending.db")
    assert quota_on(second).left()[1] == 1
    first.close()
    assert not quota_on(second, now=59.0).take(0, 2)
    assert quota_on(second, now=60.0).take(0, 2)
    second.close()
    third = Ledger(tmp_path / "spending.db")
    assert quota_on(third, now=60.0).left()[1] == 1
    # The wall clock was set back while nothing ran: what is spent now comes back no sooner than
    # what was spent before.
    assert quota_on(third, now=10.0).take(0, 1)
    assert quota_on(third, now=10.0).wait(0, 1) == 110.0
    assert quota_on(third, now=119.0).left()[1] == 0
    third.close()


def test_what_counts_for_nobody_is_forgotten(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db")
    for now in range(0, 1000, 10):
        assert quota_on(ledger, float(now), "100 items per 60s").take(1, 1)
    assert len(ledger.log_of("s").rows()) <= 7
    # One who counts longer periods keeps the others from forgetting what it needs.
    assert quota_on(ledger, 1000.0, "1000 items per 500s").take(1, 1)
    for now in range(1010, 2000, 10):
        assert quota_on(ledger, float(now), "100 items per 60s").take(1, 1)
    assert quota_on(ledger, 2000.0, "1000 items per 500s").left()[0] == 1000 - 49
    ledger.close()


def test_many_rows_are_merged_on_disk_too(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db")
    with ledger.transaction():
        for number in range(800):
            assert quota_on(ledger, number / 10, "100000 items per 1h").take(1, 1)
        assert len(ledger.log_of("s").rows()) <= 600
    assert quota_on(ledger, 80.0, "100000 items per 1h").left()[0] == 99_200
    ledger.close()


def test_a_limit_that_was_lowered_counts_what_was_spent_before(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db")
    assert quota_on(ledger, 0.0, "10 requests per 1m").take(0, 8)
    assert quota_on(ledger, 1.0, "5 requests per 1m").left()[1] == 0
    assert quota_on(ledger, 1.0, "9 requests per 30s").left()[1] == 1
    ledger.close()


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db")
    quota = quota_on(ledger)

    def spend_and_fail() -> None:
        with ledger.transaction():
            assert quota.take(1, 1)
            ledger.set_mark("s", "q", Mark(1, 1, 1, 1, 1))
            raise RuntimeError("something else")

    with pytest.raises(RuntimeError, match="something else"):
        spend_and_fail()
    assert quota.left()[1] == 3
    assert ledger.mark("s", "q") is None
    ledger.close()


def test_it_is_flushed_to_the_disk_with_every_transaction(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db")
    assert ledger.run("PRAGMA journal_mode") == [("wal",)]
    assert ledger.run("PRAGMA synchronous") == [(2,)]
    ledger.close()


def test_one_who_holds_the_file_lets_nobody_spend(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db", longest_wait=0.0)
    quota = quota_on(ledger)
    other = sqlite3.connect(tmp_path / "spending.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(
        LedgerError, match=r"spending\.db cannot be used, so nothing is spent: database is locked"
    ):
        quota.take(1, 1)
    assert quota.left()[1] == 3
    other.execute("ROLLBACK")
    other.close()
    assert quota.take(1, 1)
    ledger.close()


def test_a_full_disk_lets_nobody_spend(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db")
    ledger.run("PRAGMA max_page_count = 1")
    long_name = "s" * 3000
    quota = Quota(
        [Limit.parse("1000 requests per 1m")], time=lambda: 0.0, ledger=ledger, service=long_name
    )
    taken = 0

    def take_all() -> None:
        nonlocal taken
        while quota.take(1, 1):
            taken += 1

    with pytest.raises(LedgerError, match="full"):
        take_all()
    with pytest.raises(LedgerError, match="full"):
        take_all()
    assert sum(row.requests for row in ledger.log_of(long_name).rows()) == taken
    ledger.close()


def test_a_file_that_may_only_be_read_lets_nobody_spend(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db")
    ledger.run("PRAGMA query_only = ON")
    with pytest.raises(LedgerError, match="readonly"):
        quota_on(ledger).take(1, 1)
    ledger.close()


@pytest.mark.parametrize("is_there_another", [False, True])
def test_a_file_that_is_taken_away_while_it_is_in_use_lets_nobody_spend(
    tmp_path: Path, is_there_another: bool
) -> None:
    path = tmp_path / "spending.db"
    ledger = Ledger(path)
    quota = quota_on(ledger)
    assert quota.take(1, 1)
    path.rename(tmp_path / "elsewhere.db")
    if is_there_another:
        Ledger(path).close()
    with pytest.raises(LedgerError, match="replaced" if is_there_another else "No such file"):
        quota.take(1, 1)
    ledger.close()


@pytest.mark.parametrize(
    "content", [b"not a ledger, but some text\n" * 100, b"\x00" * 5000, b"SQLite format 3\x00"]
)
def test_what_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "spending.db"
    path.write_bytes(content)
    with pytest.raises(LedgerError, match=r"spending\.db"):
        Ledger(path)
    assert path.read_bytes() == content


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "spending.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger(path)
    assert path.read_bytes() == before


def test_another_versions_ledger_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spending.db"
    ledger = Ledger(path)
    ledger.run("PRAGMA user_version = 3")
    ledger.close()
    with pytest.raises(LedgerError, match="version 3, not 2"):
        Ledger(path)


VERSION_1 = """
CREATE TABLE spent (service TEXT NOT NULL, at REAL NOT NULL, items INTEGER NOT NULL,
    requests INTEGER NOT NULL);
CREATE INDEX spent_by_time ON spent (service, at);
CREATE TABLE kept (service TEXT PRIMARY KEY, seconds REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE marks (service TEXT NOT NULL, query TEXT NOT NULL, evaluation INTEGER NOT NULL,
    items INTEGER NOT NULL, requests INTEGER NOT NULL, allowed_items INTEGER NOT NULL,
    allowed_requests INTEGER NOT NULL, PRIMARY KEY (service, query)) WITHOUT ROWID;
INSERT INTO spent VALUES ('s', 100.0, 2, 1);
INSERT INTO marks VALUES ('s', 'q', 7, 2, 1, 4, 3);
PRAGMA application_id = 1097028720;
PRAGMA user_version = 1;
"""


def test_a_ledger_of_version_1_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "spending.db"
    with sqlite3.connect(path) as old:
        old.executescript(VERSION_1)
    old.close()
    for now in (130.0, 140.0):
        ledger = Ledger(path, machine=MachineClock("a", lambda now=now: now), wall=lambda: 130.0)
        assert ledger.run("PRAGMA user_version") == [(2,)]
        assert ledger.log_of("s").rows() == [Spent(100.0, 2, 1)]
        assert ledger.mark("s", "q") == Mark(7, 2, 1, 4, 3)
        assert ledger.now() == now
        ledger.close()


# The ledger's time --------------------------------------------------------------------------------


def test_its_time_goes_on_over_restarts_whatever_the_time_of_day_is_set_to(tmp_path: Path) -> None:
    def now(boot: str, seconds: float, wall: float) -> float:
        machine = MachineClock(boot, lambda: seconds)
        ledger = Ledger(tmp_path / "spending.db", machine=machine, wall=lambda: wall)
        with ledger.transaction():
            ledger.log_of("s").add(Spent(ledger.now(), 1, 1))
        ledger.close()
        return ledger.now()

    assert now("a", seconds=50.0, wall=1000.0) == 1000.0
    assert now("a", seconds=60.0, wall=90_000.0) == 1010.0
    assert now("a", seconds=61.5, wall=5.0) == 1011.5
    # After a boot, the machine's clock cannot be compared: the time of day counts.
    assert now("b", seconds=3.0, wall=1400.0) == 1400.0
    assert now("b", seconds=4.0, wall=0.0) == 1401.0
    # If that was set back, time goes on from the newest row.
    assert now("c", seconds=3.0, wall=700.0) == 1401.0
    assert now("c", seconds=13.0, wall=700.0) == 1411.0


SAY_NOW = """
import sys
from replica.spending.ledger import Ledger
print(repr(Ledger(sys.argv[1], wall=lambda: 1e12).now()))
"""


def test_a_machine_without_boot_ids_has_a_clock_per_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert MachineClock.of_this_machine().boot == MachineClock.of_this_machine().boot
    monkeypatch.setattr(Path, "read_text", lambda *_: (_ for _ in ()).throw(FileNotFoundError))
    one, other = MachineClock.of_this_machine(), MachineClock.of_this_machine()
    assert one.boot != other.boot
    assert one.seconds() <= other.seconds() <= one.seconds() + 3600


def test_processes_have_one_time(tmp_path: Path) -> None:
    path = tmp_path / "spending.db"
    ledger = Ledger(path, wall=lambda: 1000.0)
    before = ledger.now()
    there, _ = started("-c", SAY_NOW, path).communicate()
    assert 1000.0 <= before <= float(there) <= ledger.now() < 1e9
    ledger.close()


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(LedgerError, match="nowhere"):
        Ledger(tmp_path / "nowhere" / "spending.db")


def test_a_damaged_file_is_used_or_refused_but_raises_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "whole.db"
    ledger = Ledger(path)
    for now in range(5):
        assert quota_on(ledger, float(now), "100 items per 1h").take(3, 1)
    ledger.set_mark("s", "q", Mark(1, 1, 1, 1, 1))
    ledger.close()
    whole = path.read_bytes()
    chance = random.Random(3)
    refused = 0
    for number in range(40):
        damaged = bytearray(whole)
        for _ in range(chance.randint(1, 400)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        if chance.random() < 0.3:
            del damaged[chance.randrange(1, len(damaged)) :]
        copy = tmp_path / f"{number}.db"
        copy.write_bytes(damaged)
        try:
            found = Ledger(copy)
        except LedgerError:
            refused += 1
            continue
        try:
            quota_on(found, 6.0, "100 items per 1h").take(1, 1)
            found.mark("s", "q")
        except LedgerError:
            refused += 1
        finally:
            found.close()
    assert refused >= 30


def test_services_and_queries_are_kept_apart(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.db")
    for at, service in itertools.product((1.0, 2.0), ("a", "b")):
        ledger.log_of(service).add(Spent(at, items=1, requests=ord(service)))
    ledger.log_of("a").forget(1.0)
    assert ledger.log_of("a").rows() == [Spent(2.0, 1, 97)]
    assert ledger.log_of("b").rows() == [Spent(1.0, 1, 98), Spent(2.0, 1, 98)]
    ledger.set_mark("a", "q", Mark(3, 1, 1, 2, 2))
    assert ledger.mark("a", "other") is None
    assert ledger.mark("b", "q") is None
    ledger.close()
