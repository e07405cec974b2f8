"""Snapshots of a replica: its values, its spending, and its knowledge of the remote."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replica.access import Access
from replica.budget import Budget
from replica.clocks import EventTime, SteadyTime
from replica.freshness.change_model import ChangeModel
from replica.maintainer import Maintainer, Refreshed
from replica.remotes import MayAsk, RemoteError, always
from replica.snapshot import pack_parts, unpack_parts
from replica.spending.account import Account
from replica.spending.ledger import Ledger
from replica.spending.limit import Limit
from replica.spending.quota import Quota
from replica.store import ReplicaStore, SnapshotError, Solution, SolutionStore
from tests.support.stores import Evict, Put, Touch, lives

KEYS = [f"<urn:{name}>" for name in "abcdefghij"]
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"


@dataclass
class Remote:
    """A table that the test changes, of which some records cannot be used, and which may fail."""

    values: dict[str, int]
    block_size: int = 3
    failing: bool = False
    rejected: Counter[str] = field(default_factory=Counter)
    loads: Sequence[str] | None = None
    """Keys that may be loaded; None if loading fails."""

    def load(self, timeout: float, may_ask: MayAsk = always) -> Iterator[list[Solution]]:
        if self.loads is None:
            raise NotImplementedError("this remote cannot be loaded")
        yield [{"k": key, "v": f'"7"^^<{INTEGER}>'} for key in self.loads]

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        if self.failing:
            raise RemoteError("out of order", too_large=len(keys) > 1)
        self.rejected["odd"] += sum(key in KEYS[::4] for key in keys)
        return [
            {"k": key, "v": f'"{self.values[key]}"^^<{INTEGER}>'}
            for key in keys
            if key in self.values
        ]


@dataclass
class World:
    """A maintainer over a remote, at times that the test sets."""

    remote: Remote = field(default_factory=lambda: Remote(dict.fromkeys(KEYS[:7], 0)))
    seconds: float = 1000.0

    def __post_init__(self) -> None:
        self.keeper = self.make()

    def make(self) -> Maintainer[ReplicaStore]:
        limits = [Limit.parse("9 items per 20s"), Limit.parse("40 items per 1h")]
        quota = Quota(limits, time=lambda: self.seconds, wall=lambda: self.seconds)
        account = Account(Budget(5, 2, 60.0), quota=quota, bank=Budget(3, 1, 0.0))
        access = Access(block_size=3, clock=lambda: self.seconds, jitter=lambda: 1.0, concurrency=1)
        store = ReplicaStore("k", ["v"], limit=6)
        return Maintainer(store, self.remote, account, access=access, now=EventTime())

    def restart(self) -> None:
        """Go on in a new process, so to speak: the remote's own counts begin anew."""
        snapshot = self.keeper.snapshot()
        self.remote = Remote(self.remote.values, failing=self.remote.failing)
        self.keeper = self.make()
        self.keeper.resume(snapshot)
        assert self.keeper.snapshot() == snapshot

    def step(self, at: int, chance: random.Random) -> object:
        self.seconds += chance.choice([0.0, 1.0, 7.5])
        self.remote.values.update({key: chance.randint(0, 9) for key in chance.sample(KEYS, 2)})
        self.remote.failing = chance.random() < 0.2
        keys = chance.sample(KEYS, chance.randint(0, len(KEYS)))
        self.keeper.store.touch(self.keeper.store.rows(keys))
        found = self.keeper.refresh(keys, evaluation=1000 * at)
        rows = self.keeper.store.all_rows()
        intervals = ChangeModel(self.keeper.store.history).intervals(rows).tolist()
        return (
            shown(found),
            self.keeper.budget,
            self.keeper.account.left.items,
            self.keeper.store.keys(rows),
            intervals,
        )


def shown(found: Refreshed) -> object:
    return sorted(found.fetched), found.changed, found.spending.items, found.failure, found.rejected


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.sets(st.integers(0, 20), min_size=1, max_size=3))
def test_a_maintainer_goes_on_wherever_it_is_cut(seed: int, cuts: set[int]) -> None:
    whole, cut = World(), World()
    for at in range(22):
        if at in cuts:
            cut.restart()
        assert cut.step(at, random.Random(seed + at)) == whole.step(at, random.Random(seed + at))
    assert (
        unpack_parts(cut.keeper.snapshot())["store"]
        == unpack_parts(whole.keeper.snapshot())["store"]
    )


def test_what_is_to_be_told_is_told_after_the_restart() -> None:
    world = World()
    world.keeper.load_later()
    world.remote.rejected["odd"] += 3
    world.remote.loads = ["\ud800"]
    world.keeper.load()
    world.restart()
    with pytest.raises(NotImplementedError, match="loaded"):
        world.keeper.begin(None)  # it still wants to be loaded, which this remote cannot
    world.remote.loads = []
    told = world.keeper.refresh(())
    assert (told.changed, told.rejected) == (("\ud800",), {"odd": 3})
    assert world.keeper.refresh(()).rejected == {}


def test_any_damage_to_a_maintainer_is_noticed() -> None:
    world, chance = World(), random.Random(3)
    world.step(1, chance)
    snapshot = world.keeper.snapshot()
    for wrong in (b"", b"x", snapshot[:-1], pack_parts({}), world.keeper.store.snapshot()):
        with pytest.raises(SnapshotError):
            world.make().resume(wrong)
    for at in (chance.randrange(len(snapshot)) for _ in range(40)):
        with pytest.raises(SnapshotError):
            world.make().resume(
                snapshot[:at]
                + bytes([snapshot[at] ^ 1 << chance.randrange(8)])
                + snapshot[at + 1 :]
            )


# Stores -------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(lives, lives, lives, st.sampled_from([ReplicaStore, SolutionStore]))
def test_a_store_in_use_knows_what_another_knew_and_nothing_else(
    life: list, mine: list, further: list, kind: type
) -> None:
    one, other = (kind("k", ["k", "v", "w"], limit=4) for _ in range(2))
    model = ChangeModel(other.history)
    for store, steps in ((one, life), (other, mine)):
        for step in steps:
            do(store, step)
    other.resume(one.snapshot())
    for step in further:
        assert do(one, step) == do(other, step)
    assert one.snapshot() == other.snapshot()
    rows = one.all_rows()
    assert ChangeModel(one.history).rates(rows).tolist() == model.rates(rows).tolist()


def do(store: ReplicaStore | SolutionStore, step: Put | Touch | Evict) -> object:
    match step:
        case Put():
            return store.put(step.asked, step.solutions, step.now)
        case Touch():
            return store.touch(store.rows(step.keys))
        case Evict():
            return store.evict()


@pytest.mark.parametrize("kind", [ReplicaStore, SolutionStore])
def test_a_store_of_other_variables_is_refused(kind: type) -> None:
    with pytest.raises(SnapshotError, match="of a store of"):
        kind("k", ["w"]).resume(kind("k", ["v"]).snapshot())


# What was spent -----------------------------------------------------------------------------------


@dataclass
class Clocks:
    """A clock that begins anew with every process, and one on the wall."""

    monotonic: float = 50.0
    wall: float = 1.7e9

    def quota(self, *texts: str, ledger: Ledger | None = None) -> Quota:
        if ledger is not None:
            return Quota(
                map(Limit.parse, texts),
                ledger=ledger,
                time=lambda: self.wall,
                wall=lambda: self.wall,
            )
        return Quota(map(Limit.parse, texts), time=lambda: self.monotonic, wall=lambda: self.wall)

    def pass_(self, seconds: float) -> None:
        self.monotonic += seconds
        self.wall += seconds


def restarted(quota: Quota, clocks: Clocks, *texts: str, down: float = 0.0) -> Quota:
    snapshot = quota.snapshot()
    clocks.monotonic = 3.25
    clocks.wall += down
    fresh = clocks.quota(*texts)
    fresh.resume(snapshot)
    return fresh


def test_a_restart_gives_nothing_back_before_its_time() -> None:
    clocks, limit = Clocks(), "10 items per 60s"
    quota = clocks.quota(limit)
    assert quota.take(6, 1)
    clocks.pass_(20.0)
    assert quota.take(4, 1)
    quota = restarted(quota, clocks, limit, down=5.0)
    assert (quota.left()[0], quota.wait(6, 1), quota.wait(10, 1)) == (0, 35.0, 55.0)
    clocks.pass_(35.0)
    assert quota.left()[0] == 6
    quota = restarted(quota, clocks, limit, down=-1000.0)  # somebody sets the clock back
    assert (quota.left()[0], quota.wait(10, 1)) == (6, 20.0)
    assert restarted(quota, clocks, limit, down=1000.0).left()[0] == 10


def test_queries_that_share_a_quota_bring_it_back_once() -> None:
    clocks, limit = Clocks(), "10 items per 60s"
    quota = clocks.quota(limit)
    assert quota.take(2, 1)
    early = quota.snapshot()
    assert quota.take(3, 1)
    late = quota.snapshot()
    fresh = clocks.quota(limit)
    assert fresh.take(1, 1)
    left = []
    for snapshot in (early, late, late, early):
        fresh.resume(snapshot)
        left.append(fresh.left()[0])
    assert left == [7, 4, 4, 4]
    assert fresh.take(4, 1)
    again = clocks.quota(limit)
    for snapshot in (fresh.snapshot(), late):
        again.resume(snapshot)
    assert again.left()[0] == 0


@given(
    st.lists(
        st.tuples(st.floats(0, 30), st.integers(0, 6), st.booleans(), st.floats(0, 9)), max_size=30
    ),
    st.sampled_from(["9 items per 20s", "3 requests per 7s"]),
)
def test_no_number_of_restarts_lets_more_be_spent(
    steps: list[tuple[float, int, bool, float]], limit: str
) -> None:
    clocks, spent = Clocks(wall=0.0), list[tuple[float, int, int]]()
    quota, parsed = clocks.quota(limit), Limit.parse(limit)
    for wait, items, restarts, down in steps:
        clocks.pass_(wait)
        if restarts:
            quota = restarted(quota, clocks, limit, down=down)
        if quota.take(items, 1):
            spent.append((clocks.wall, items, 1))
    for at, _, _ in spent:
        # A hair's breadth for what the wall clock's own digits cannot tell.
        inside = [each for each in spent if at <= each[0] < at + parsed.seconds - 1e-9]
        assert (
            sum(items if parsed.unit == "items" else 1 for _, items, _ in inside) <= parsed.amount
        )


def test_what_a_ledger_has_is_not_counted_twice(tmp_path: object) -> None:
    clocks, limit = Clocks(), "10 items per 60s"

    def with_ledger() -> Quota:
        return clocks.quota(limit, ledger=Ledger(f"{tmp_path}/ledger"))

    quota = with_ledger()
    assert quota.take(6, 1)
    fresh = with_ledger()
    fresh.resume(quota.snapshot())
    assert fresh.left()[0] == 4
    assert Quota([]).snapshot()


def test_an_account_goes_on_with_its_bank_and_its_evaluation() -> None:
    def make(items: int = 5, requests: int = 2) -> Account:
        return Account(
            Budget(items, requests, 1.0), quota=Quota(), bank=Budget(3, 1, 0.0), clock=lambda: 7.0
        )

    account = make()
    account.begin(1)
    account.begin(2)
    assert account.take(4, 1)
    snapshot, fresh = account.snapshot(), make()
    fresh.resume(snapshot)
    assert (fresh.allowed, fresh.spending) == (account.allowed, account.spending)
    assert fresh.allowed == Budget(8, 3, 1.0)
    for each in (account, fresh):
        each.begin(2)
        assert not each.take(5, 1)
        each.begin(1)
        assert not each.take(1, 1)
        each.begin(3)
    assert fresh.allowed == account.allowed == Budget(8, 3, 1.0)
    smaller = make(1, 1)
    smaller.resume(snapshot)
    assert smaller.allowed == Budget(4, 2, 1.0)


# What was learned of the remote -------------------------------------------------------------------


def test_a_remote_that_is_left_alone_is_left_alone_after_a_restart() -> None:
    now = 100.0

    def make() -> Access:
        return Access(block_size=1000, clock=lambda: now, jitter=lambda: 1.0)

    access = make()
    access.succeeded(access.breaker.sent(), 100)
    access.failed(access.breaker.sent(), 200, RemoteError("too much", too_large=True))
    for _ in range(3):
        access.failed(access.breaker.sent(), 5, RemoteError("down", retry_after=20.0))
    sent = access.breaker.sent()
    now += 15.0
    snapshot = access.snapshot()
    now = 2.0
    fresh = make()
    fresh.resume(snapshot)
    assert fresh.snapshot() == snapshot
    assert (fresh.block_size.now, fresh.breaker.allowed(), fresh.breaker.wait) == (100, 0, 5.0)
    assert fresh.refusal == "down (it is left alone for another 5.0 s)"
    fresh.succeeded(sent, 5)
    assert not fresh.breaker.is_closed
    now += 5.0
    assert fresh.breaker.allowed() == 1
    with pytest.raises(SnapshotError):
        fresh.resume(snapshot[:-1])


def test_no_time_is_earlier_than_what_another_process_has_seen() -> None:
    wall = 1000.0
    ahead, behind = (
        SteadyTime(lambda: wall + 60, lambda: 5.0),
        SteadyTime(lambda: wall, lambda: 8.0),
    )
    stores = [ReplicaStore("k", ["v"]) for _ in range(2)]
    remote = Remote({KEYS[0]: 1})
    before, after = (
        Maintainer(store, remote, Budget(9, 9, 60.0), now=now)
        for store, now in zip(stores, (ahead, behind), strict=True)
    )
    before.refresh(KEYS[:1])
    after.resume(before.snapshot())
    assert behind() == 1060.0
    remote.values[KEYS[0]] = 2
    assert after.refresh(KEYS[:1]).changed == (KEYS[0],)
    assert after.store.numbers("v", after.store.rows(KEYS[:1])).tolist() == [2.0]
    assert np.isfinite(after.store.fetched_at(after.store.rows(KEYS[:1]))).all()
    behind.go_on_from(3.0)
    assert behind() == 1060.0
