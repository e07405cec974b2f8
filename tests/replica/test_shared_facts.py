"""Facts that replicas of one question tell each other: against a replica that is told all."""

from __future__ import annotations

import threading
from random import Random

import pytest

from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.remotes import RemoteError
from replica.shared_facts import FactsInbox, SharedFacts
from replica.store import ReplicaStore, RunStore, Solution

KEYS = [f"<urn:{name}>" for name in "abcdefgh"]


class Changing:
    """Remote whose values are the number of its requests, of which some keys have two or none."""

    block_size = 3

    def __init__(self, names: tuple[str, str]) -> None:
        self.key, self.value = names
        self.requests = 0

    def fetch(self, keys: list[str], timeout: float) -> list[Solution]:
        self.requests += 1
        if self.requests % 5 == 0:
            raise RemoteError("it fails now and then")
        return [
            {self.key: key, self.value: f'"{self.requests + more}"'}
            for key in keys
            for more in range(KEYS.index(key) % 3)
        ]


def said(store: ReplicaStore | RunStore) -> list[list[str | None]]:
    """Return the values of all keys."""
    found = []
    for key in KEYS:
        rows = store.rows([key])
        runs = store.runs(rows)
        places = rows if runs is None else runs.places
        has = bool(rows[0] >= 0 and store.present(rows)[0])
        found.append(sorted(map(str, store.terms(store.variables[0], places))) if has else [])
    return found


@pytest.mark.parametrize("kind", [ReplicaStore, RunStore])
@pytest.mark.parametrize("seed", range(8))
def test_replicas_that_tell_each_other_know_what_one_knows_that_asks_for_all(
    kind: type[ReplicaStore] | type[RunStore], seed: int
) -> None:
    """Whoever asks, and with any names of variables, also over a snapshot."""
    chance, facts = Random(seed), SharedFacts()
    now = 0.0
    remote = Changing(("k", "v"))

    def clock() -> float:
        return now

    def made(names: tuple[str, str], inbox: SharedFacts | None) -> Maintainer[ReplicaStore]:
        store = kind(names[0], names[1:])
        told = None if inbox is None else inbox.join(store, dict(zip(names, "kv", strict=True)))
        keeper = Renamed(remote, names)
        return Maintainer(store, keeper, Budget(9, 9, 60.0), facts=told, now=clock)  # type: ignore[return-value]

    several = [made(names, facts) for names in (("k", "v"), ("x", "y"), ("k", "v"))]
    for _ in range(30):
        now += 1.0
        one = chance.choice(several)
        one.begin(None)
        one.fetch(chance.sample(KEYS, chance.randint(1, 4)))
        if chance.random() < 0.2:
            at = chance.randrange(3)
            names = ("k", "v") if at != 1 else ("x", "y")
            fresh = made(names, facts)
            fresh.resume(several[at].snapshot())
            several[at].close()
            several[at] = fresh
    for each in several:
        each.begin(None)
    stores = [each.store for each in several]
    first = stores[0]
    for other in stores[1:]:
        rows, mine = other.rows(KEYS), first.rows(KEYS)
        assert other.fetched_at(rows).tolist() == first.fetched_at(mine).tolist()
        assert other.present(rows).tolist() == first.present(mine).tolist()
        assert said(other) == said(first)


class Renamed:
    """A remote that is asked with other names of variables."""

    def __init__(self, remote: Changing, names: tuple[str, str]) -> None:
        self._remote = remote
        self._names = names
        self.block_size = remote.block_size

    def fetch(self, keys: list[str], timeout: float) -> list[Solution]:
        key, value = self._names
        found = self._remote.fetch(keys, timeout)
        return [{key: each["k"], value: each["v"]} for each in found]


def test_a_replica_that_joins_takes_over_what_another_knows() -> None:
    facts = SharedFacts()
    one = ReplicaStore("k", ("n",))
    telling = facts.join(one, {"k": "k", "n": "n"})
    one.put(KEYS[:2], [{"k": KEYS[0], "n": '"1"'}], 3.0)
    other = ReplicaStore("k", ("n",))
    joining = facts.join(other, {"k": "k", "n": "n"})
    assert joining.take_over()
    assert other.fetched_at(other.rows(KEYS[:3])).tolist()[:2] == [3.0, 3.0]
    unlike = facts.join(ReplicaStore("x", ("n",)), {"x": "k", "n": "n"})
    assert not unlike.take_over()
    telling.tell(KEYS[:1], [{"k": KEYS[0], "n": '"2"'}], 5.0)
    assert [len(list(each.take())) for each in (telling, joining, unlike)] == [0, 1, 1]


def test_what_has_left_is_told_nothing_and_an_older_reply_is_no_news() -> None:
    facts = SharedFacts()

    def inbox() -> FactsInbox:
        return facts.join(ReplicaStore("k", ("n",)), {"k": "k", "n": "n"})

    one, other, gone = inbox(), inbox(), inbox()
    gone.leave()
    one.tell(KEYS[:1], [], 5.0)
    one.tell(KEYS[:1], [{"k": KEYS[0], "n": '"1"'}], 4.0)
    assert [each.solutions for each in other.take()] == [[]]
    assert (list(gone.take()), len(facts)) == ([], 2)


class Gated:
    """Remote that answers once it is let."""

    block_size = 10

    def __init__(self, key: str) -> None:
        self.key = key
        self.gate = threading.Event()
        self.asked: list[list[str]] = []

    def fetch(self, keys: list[str], timeout: float) -> list[Solution]:
        self.asked.append(keys)
        assert self.gate.wait(60)
        return [{self.key: key, "v": '"1"'} for key in keys]


def test_a_request_under_way_for_one_is_waited_for_by_others_and_paid_once() -> None:
    """By other names of variables; keys that nobody has asked for are paid for."""
    facts, remote, other = SharedFacts(), Gated("k"), Gated("x")
    first, second = (
        Maintainer(store, asked, Budget(3, 3, 60.0), facts=facts.join(store, {key: "k", "v": "v"}))
        for key, asked in (("k", remote), ("x", other))
        for store in [ReplicaStore(key, (key, "v"))]
    )
    first.begin(1)
    second.begin(1)
    mine = first.ask(KEYS[:2])
    theirs = second.ask(KEYS[:4])
    remote.gate.set()
    other.gate.set()
    found, heard = first.gather(mine), second.gather(theirs)
    assert (remote.asked, other.asked) == ([KEYS[:2]], [KEYS[2:4]])
    assert found.fetched == set(KEYS[:2])
    assert heard.fetched == set(KEYS[:4])
    assert [each.spending.items for each in (found, heard)] == [2, 2]
    assert [each.spending.requests for each in (found, heard)] == [1, 1]
    assert said(second.store)[:2] == [['"1"'], ['"1"']]
    second.begin(2)
    assert second.fetch([]).changed == ()
