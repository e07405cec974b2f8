"""The maintainer: never over budget, never past the deadline, whatever the remote does."""

from __future__ import annotations

import threading
from asyncio import CancelledError
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.oxigraph import OxigraphServer
from replica.access import Access
from replica.budget import Budget
from replica.clocks import EventTime
from replica.feeds.subscription import Subscription
from replica.maintainer import Maintainer
from replica.remotes import Remote, RemoteError, sparql
from replica.remotes.silent import SilentRemote
from replica.spending.account import Account
from replica.spending.ledger import Ledger
from replica.spending.limit import Limit
from replica.spending.quota import Quota
from replica.store import WHOLE, ReplicaStore, Solution, SolutionStore
from tests.support.noting_client import NotingClient
from tests.support.told import Told
from tests.support.waiting import PATIENCE
from tests.support.worlds import TableRemote, integer, user_term


def maintainer(remote: Remote, budget: Budget) -> Maintainer[ReplicaStore]:
    return Maintainer(ReplicaStore("user", ["user", "followers"]), remote, budget)


@given(
    st.integers(0, 9),
    st.integers(0, 4),
    st.integers(1, 5),
    st.lists(st.sampled_from("abcdefgh"), unique=True),
)
def test_no_refresh_spends_more_than_its_budget(
    items: int, requests: int, block: int, users: list[str]
) -> None:
    remote = TableRemote({"a": 1, "b": 2}, block_size=block)
    refreshed = maintainer(remote, Budget(items, requests, 5.0)).refresh(
        [user_term(user) for user in users]
    )
    assert sum(map(len, remote.asked)) == refreshed.spending.items <= items
    assert len(remote.asked) == refreshed.spending.requests <= requests
    assert all(len(asked) <= block for asked in remote.asked)
    assert [key for asked in sorted(remote.asked, key=users_at(users)) for key in asked] == [
        user_term(user) for user in users[: refreshed.spending.items]
    ]
    assert refreshed.spending.items == min(items, len(users), requests * block)
    assert refreshed.fetched == {key for asked in remote.asked for key in asked}


def users_at(users: list[str]) -> Callable[[list[str]], int]:
    """Sort requests, which run at the same time, by the first key they ask for."""
    return lambda asked: users.index(asked[0][-2])


def test_only_what_has_changed_is_reported_as_changed() -> None:
    remote = TableRemote({"a": 1, "b": 2}, block_size=9)
    keeper = maintainer(remote, Budget(9, 1, 5.0))
    keys = [user_term(user) for user in "abz"]
    assert set(keeper.refresh(keys).changed) == set(keys)
    assert keeper.refresh(keys).changed == ()
    remote.followers["b"] = 3
    assert keeper.refresh(keys).changed == (user_term("b"),)


@pytest.mark.parametrize("block", [1, 2, 9])
def test_what_is_learned_does_not_depend_on_how_many_requests_it_took(block: int) -> None:
    remote = TableRemote(dict.fromkeys("abcdef", 1), block_size=block)
    now = EventTime()
    keeper = Maintainer(ReplicaStore("user", ["followers"]), remote, Budget(9, 9, 5.0), now=now)
    in_one = Maintainer(
        ReplicaStore("user", ["followers"]),
        TableRemote(remote.followers, block_size=9),
        Budget(9, 1, 5.0),
        now=now,
    )
    for time, user in enumerate("afbfcf", start=1):
        remote.followers[user] += 1
        for each in (keeper, in_one):
            each.refresh([user_term(user) for user in "abcdef"], evaluation=1000 * time)
    rows = keeper.store.rows([user_term(user) for user in "abcdef"])
    found, expected = (each.store.history.rates.posterior(rows) for each in (keeper, in_one))
    assert [column.tolist() for column in found] == [column.tolist() for column in expected]


def test_a_failed_request_costs_budget_and_keeps_the_last_known_values() -> None:
    remote = TableRemote({"a": 1}, block_size=9)
    keeper = maintainer(remote, Budget(9, 1, 5.0))
    keeper.refresh([user_term("a")])
    remote.failing = True
    refreshed = keeper.refresh([user_term("a")])
    assert refreshed.failure == "the table is out of order"
    assert (refreshed.spending.items, refreshed.spending.failed, refreshed.fetched) == (
        1,
        1,
        frozenset(),
    )
    assert keeper.store.term("followers", user_term("a")) == integer(1)


def test_not_even_what_ends_a_thread_is_more_than_a_failed_request() -> None:
    class Cancelled(TableRemote):
        def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
            self.asked.append(list(keys))
            raise CancelledError

    remote = Cancelled()
    access = Access(concurrency=1)
    keeper = Maintainer(
        ReplicaStore("user", ["followers"]), remote, Budget(9, 1, 5.0), access=access
    )
    failures = [keeper.refresh([user_term("a")]).failure for _ in range(2)]
    assert failures == ["CancelledError: "] * 2
    assert len(remote.asked) == 2


def test_a_defect_in_a_remote_is_a_failed_request() -> None:
    class Defective(TableRemote):
        def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
            raise ZeroDivisionError("oops")

    refreshed = maintainer(Defective(), Budget(9, 1, 5.0)).refresh([user_term("a")])
    assert refreshed.failure == "ZeroDivisionError: oops"


class Gate(TableRemote):
    """A remote that answers when told to."""

    def __init__(self) -> None:
        super().__init__({"a": 1, "b": 2, "c": 3}, block_size=1)
        self.opened = threading.Event()
        self.answered = threading.Semaphore(0)

    def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
        self.opened.wait(30)
        try:
            return super().fetch(keys, timeout)
        finally:
            self.answered.release()

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        yield []


def test_an_evaluation_waits_only_for_what_it_has_asked_for_itself() -> None:
    remote = Gate()
    keeper = Maintainer(ReplicaStore("user", ["user", "followers"]), remote, Budget(9, 1, 1_000.0))
    keeper.refresh([user_term("a")], longest_wait=0.0)  # hangs, and is left under way
    refreshed = keeper.refresh([])  # must not wait for the thousand seconds that it may
    assert (refreshed.spending.requests, refreshed.fetched) == (0, frozenset())
    remote.opened.set()


def test_a_key_is_not_asked_for_again_while_a_request_for_it_is_under_way() -> None:
    remote = Gate()
    keeper = Maintainer(ReplicaStore("user", ["user", "followers"]), remote, Budget(9, 9, 1_000.0))
    keeper.refresh([user_term("a")], longest_wait=0.0)
    second = keeper.refresh([user_term("a"), user_term("b")], longest_wait=0.0)
    assert (second.spending.items, keeper.under_way) == (1, 2)
    remote.opened.set()
    for _ in range(2):
        assert remote.answered.acquire(timeout=PATIENCE)
    assert sorted(remote.asked) == [[user_term("a")], [user_term("b")]]


def test_no_more_requests_are_under_way_at_once_than_allowed_and_the_others_follow() -> None:
    remote = Gate()
    access = Access(concurrency=2, block_size=1)
    store = ReplicaStore("user", ["user", "followers"])
    keeper = Maintainer(store, remote, Budget(9, 9, 1_000.0), access=access)
    keeper.begin(None)
    asked = keeper.ask([user_term(user) for user in "abc"])
    assert keeper.under_way == 2
    assert not access.workers.reserve(0.0)
    remote.opened.set()
    refreshed = keeper.gather(asked)
    assert refreshed.fetched == {user_term(user) for user in "abc"}
    assert refreshed.spending.requests == 3


def test_what_could_not_be_sent_before_the_deadline_is_not_spent() -> None:
    remote = Gate()
    access = Access(concurrency=1, block_size=1)
    keeper = Maintainer(
        ReplicaStore("user", ["followers"]), remote, Budget(9, 9, 1_000.0), access=access
    )
    refreshed = keeper.refresh([user_term(user) for user in "abc"], longest_wait=0.0)
    assert (refreshed.spending.items, keeper.account.left.items) == (1, 8)
    remote.opened.set()


def test_a_remote_that_keeps_failing_is_left_alone_for_a_while_and_the_answer_says_so() -> None:
    remote, now = TableRemote({"a": 1}, block_size=9, failing=True), 0.0
    access = Access(block_size=9, clock=lambda: now, jitter=lambda: 1.0)
    store = ReplicaStore("user", ["user", "followers"])
    keeper = Maintainer(store, remote, Budget(9, 1, 5.0), access=access)
    failures = [keeper.refresh([user_term("a")]) for _ in range(5)]
    assert [each.spending.requests for each in failures] == [1, 1, 1, 0, 0]
    assert failures[-1].failure == "the table is out of order (it is left alone for another 1.0 s)"
    remote.failing, now = False, 1.0
    assert keeper.refresh([user_term("a")]).fetched == {user_term("a")}


def test_a_remote_is_left_alone_as_long_as_it_asks_to_be() -> None:
    class Busy(TableRemote):
        def fetch(self, keys: Sequence[str], timeout: float) -> list[Solution]:
            self.asked.append(list(keys))
            raise RemoteError("too many requests", retry_after=30.0)

    times, remote = iter([0.0, 1.0, 29.9]), Busy()
    now = next(times)
    access = Access(clock=lambda: now)
    keeper = Maintainer(
        ReplicaStore("user", ["followers"]), remote, Budget(9, 1, 5.0), access=access
    )
    keeper.refresh([user_term("a")])
    for later in times:
        now = later
        keeper.refresh([user_term("a")])
    assert len(remote.asked) == 1


def test_limits_over_time_hold_whatever_the_evaluations_may_spend() -> None:
    remote, now = TableRemote({"a": 1}, block_size=1), 0.0
    quota = Quota([Limit.parse("3 requests per 1m")], time=lambda: now)
    store = ReplicaStore("user", ["user", "followers"])
    one = Maintainer(store, remote, Account(Budget(9, 2, 5.0), quota=quota))
    other = Maintainer(store, remote, Account(Budget(9, 2, 5.0), quota=quota))
    keys = [user_term(user) for user in "abc"]
    spent = [keeper.refresh(keys).spending.requests for keeper in (one, other, one)]
    assert spent == [2, 1, 0]
    refused = one.refresh(keys)
    assert refused.failure == "the limits over time allow no request for another 60 s"
    now = 60.0
    assert one.refresh(keys).spending.requests == 2


def test_an_evaluation_made_twice_spends_its_budget_once() -> None:
    remote = TableRemote({"a": 1}, block_size=1)
    keeper = maintainer(remote, Budget(2, 2, 5.0))
    keys = [user_term(user) for user in "abc"]
    assert keeper.refresh(keys, evaluation=1000).spending.items == 2
    assert keeper.refresh(keys, evaluation=1000).spending.items == 0
    assert keeper.refresh(keys, evaluation=2000).spending.items == 2


def test_what_the_remote_tells_itself_costs_nothing() -> None:
    remote = TableRemote({"a": 1}, block_size=9)
    feed = Told()
    store = ReplicaStore("user", ["user", "followers"])
    keeper = Maintainer(store, remote, Budget(9, 1, 5.0), feed=Subscription.open(feed))
    feed.sink(
        {user_term("a"): [{"user": user_term("a"), "followers": integer(5)}], user_term("b"): []},
        7.0,
    )
    refreshed = keeper.refresh([])
    assert set(refreshed.changed) == {user_term("a"), user_term("b")}
    assert (refreshed.spending.items, refreshed.spending.requests, refreshed.fetched) == (
        0,
        0,
        frozenset(),
    )
    assert store.term("followers", user_term("a")) == integer(5)
    assert store.fetched_at(store.rows([user_term("b")])).tolist() == [7.0]
    assert refreshed.failure is None
    feed.failure = "the feed is not connected"
    assert keeper.refresh([]).failure == "the feed is not connected"


def test_several_solutions_that_the_remote_tells_are_ambiguous_once_also_after_a_restart() -> None:
    told = [{"user": user_term("a"), "followers": integer(count)} for count in (5, 6, 7)]

    def keeper(feed: Told) -> Maintainer[ReplicaStore]:
        store = ReplicaStore("user", ["user", "followers"])
        return Maintainer(
            store, TableRemote({"b": 1}), Budget(9, 9, 5.0), feed=Subscription.open(feed)
        )

    feed = Told()
    first, again = keeper(feed), keeper(Told())
    feed.sink({user_term("a"): told}, 7.0)
    first.begin(1)
    again.resume(first.snapshot())
    for each in (first, again):
        assert [each.fetch([user_term("b")]).ambiguous, each.fetch([]).ambiguous] == [2, 0]


def test_what_the_remote_tells_is_taken_in_little_by_little_and_never_beyond_the_limit() -> None:
    feed = Told()
    store = ReplicaStore("user", ["user", "followers"], limit=10)
    keeper = Maintainer(
        store, TableRemote({"a": 1}), Budget(9, 1, 5.0), feed=Subscription.open(feed)
    )
    keeper.refresh([user_term("a")])
    for at in range(7_000):
        user = user_term(f"u{at}")
        feed.sink({user: [{"user": user, "followers": integer(at)}]}, float(at))
    feed.sink({user_term("a"): [{"user": user_term("a"), "followers": integer(5)}]}, 1e12)
    for _ in range(2):
        keeper.refresh([])
        assert len(store) <= 10
    assert store.term("followers", user_term("a")) == integer(5)


def test_a_remote_that_only_tells_is_never_asked() -> None:
    store = ReplicaStore("user", ["user", "followers"])
    refreshed = Maintainer(store, SilentRemote(), Budget(9, 1, 5.0)).refresh([user_term("a")])
    assert (refreshed.spending.requests, refreshed.failure) == (0, None)


class Pages(TableRemote):
    """A remote that can be loaded, page by page of one key each."""

    def load(self, timeout: float, may_ask: object = None) -> Iterator[list[Solution]]:
        for user, count in self.followers.items():
            self.asked.append([user])
            yield [{"user": user_term(user), "followers": integer(count)}]


def test_loading_ends_when_the_replica_is_full_and_tells_how_far_it_is() -> None:
    remote, seen = Pages(dict.fromkeys("abcdefgh", 1)), list[int]()
    store = ReplicaStore("user", ["user", "followers"], limit=3)
    keeper = Maintainer(store, remote, Budget(9, 1, 5.0))
    assert keeper.load(seen.append) == 3
    assert (seen, len(remote.asked)) == ([1, 2, 3], 3)


@pytest.mark.parametrize(
    ("requests", "whole", "held"),
    [(1, False, 3), (2, False, 7), (9, False, 9), (2, True, 0), (9, True, 9)],
)
def test_loading_sends_no_more_requests_than_the_limits_over_time_allow(
    server: OxigraphServer, monkeypatch: pytest.MonkeyPatch, requests: int, whole: bool, held: int
) -> None:
    monkeypatch.setattr(sparql, "PAGE_SIZE", 4)
    rows = " ".join(f"<urn:{at}> <urn:followers> {at} ." for at in range(9))
    server.update(f"INSERT DATA {{ {rows} }}")
    client = NotingClient()
    key = None if whole else "user"
    remote = sparql.SparqlRemote(
        server.query_url,
        pattern="?user <urn:followers> ?followers .",
        variables=["user", "followers"],
        key=key,
        client=client,
    )
    quota = Quota([Limit(requests, 3600.0, "requests")], time=lambda: 0.0)
    store = SolutionStore(key, ["user", "followers"])
    Maintainer(store, remote, Account(Budget(9, 1, 5.0), quota=quota)).load()
    known = (
        store.solutions(WHOLE)
        if whole
        else [each for at in range(9) for each in store.solutions(f"<urn:{at}>")]
    )
    # A key's rows may go on on the next page: what is not followed by others is not known to be
    # whole.
    assert len(known) == held
    assert 0 < len(client.queries) <= requests


def test_a_replayed_remote_s_values_are_dated_by_the_evaluation() -> None:
    store, now = ReplicaStore("user", ["user", "followers"]), EventTime()
    keeper = Maintainer(store, TableRemote({"a": 1}), Budget(9, 9, 5.0), now=now)
    keeper.refresh([user_term("a")], evaluation=12_500)
    assert store.fetched_at(store.rows([user_term("a")])).tolist() == [12.5]


def test_a_ledger_that_fails_stops_the_asking_and_not_the_answers(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "spending.sqlite")
    quota = Quota([Limit.parse("9 requests per 1h")], ledger=ledger, service="people")
    remote = TableRemote({"a": 1})
    account = Account(Budget(9, 9, 5.0), quota=quota, ledger=ledger, query="q")
    keeper = Maintainer(ReplicaStore("user", ["user", "followers"]), remote, account)
    assert keeper.refresh([user_term("a")], evaluation=1).spending.requests == 1
    (tmp_path / "spending.sqlite").unlink()
    refused = keeper.refresh([user_term("a")], evaluation=2)
    assert "nothing is spent" in (refused.failure or "")
    assert len(remote.asked) == 1


def test_a_remote_that_hangs_delays_nothing_and_holds_no_more_than_its_workers() -> None:
    remote, now = Gate(), 0.0

    def clock() -> float:
        # Every look at the clock takes a tenth of a second: the deadline comes without anyone
        # waiting.
        nonlocal now
        now += 0.1
        return now

    store = ReplicaStore("user", ["user", "followers"])
    access = Access(concurrency=2, block_size=1)
    keeper = Maintainer(store, remote, Budget(9, 2, 0.05), access=access, clock=clock)
    first = keeper.refresh([user_term("a"), user_term("b"), user_term("c")])
    assert (first.spending.items, first.spending.requests, first.fetched) == (2, 2, frozenset())
    second = keeper.refresh([user_term("c")])
    assert (second.spending.items, second.spending.requests) == (0, 0)
    remote.opened.set()
    for _ in range(2):
        assert remote.answered.acquire(timeout=PATIENCE)
    changed: set[str] = set()
    for _ in range(1000):  # a delivery is on its way from one thread to the other
        changed.update(keeper.refresh([]).changed)
        if len(changed) == 2:
            break
    assert changed == {user_term("a"), user_term("b")}
    assert keeper.store.term("followers", user_term("a")) == integer(1)
