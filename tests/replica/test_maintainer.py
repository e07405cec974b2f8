"""The maintainer: never over budget, never past the deadline, whatever the remote does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from replica.budget import Budget
from replica.maintainer import Maintainer
from replica.remotes import Remote
from replica.store import ReplicaStore, Solution
from tests.worlds import TableRemote, integer, user_term


def maintainer(remote: Remote, budget: Budget) -> Maintainer:
    return Maintainer(ReplicaStore("user", ["user", "followers"]), remote, budget)


@given(st.integers(0, 9), st.integers(0, 4), st.integers(1, 5), st.lists(st.sampled_from("abcdefgh"), unique=True))
def test_no_refresh_spends_more_than_its_budget(items: int, requests: int, block: int, users: list[str]) -> None:
    remote = TableRemote({"a": 1, "b": 2}, block_size=block)
    refreshed = maintainer(remote, Budget(items, requests, 5.0)).refresh([user_term(user) for user in users])
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


def test_a_failed_request_costs_budget_and_keeps_the_last_known_values() -> None:
    remote = TableRemote({"a": 1}, block_size=9)
    keeper = maintainer(remote, Budget(9, 1, 5.0))
    keeper.refresh([user_term("a")])
    remote.failing = True
    refreshed = keeper.refresh([user_term("a")])
    assert refreshed.failure == "the table is out of order"
    assert (refreshed.spending.items, refreshed.spending.failed, refreshed.fetched) == (1, 1, frozenset())
    assert keeper.store.term("followers", user_term("a")) == integer(1)


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

    def load(self, timeout: float) -> Iterator[list[Solution]]:
        yield []


def test_an_evaluation_waits_only_for_what_it_has_asked_for_itself() -> None:
    remote = Gate()
    keeper = Maintainer(ReplicaStore("user", ["user", "followers"]), remote, Budget(9, 1, 1_000.0))
    keeper.refresh([user_term("a")], longest_wait=0.0)  # hangs, and is left under way
    refreshed = keeper.refresh([user_term("b")])  # must not wait for the thousand seconds that it may
    assert (refreshed.spending.requests, refreshed.fetched) == (0, frozenset())
    remote.opened.set()


def test_a_remote_that_hangs_delays_nothing_and_is_not_asked_again_meanwhile() -> None:
    remote, now = Gate(), 0.0

    def clock() -> float:
        # Every look at the clock takes a tenth of a second: the deadline comes without anyone waiting.
        nonlocal now
        now += 0.1
        return now

    keeper = Maintainer(ReplicaStore("user", ["user", "followers"]), remote, Budget(9, 2, 0.05), clock=clock)
    first = keeper.refresh([user_term("a"), user_term("b"), user_term("c")])
    assert (first.spending.items, first.spending.requests, first.fetched) == (2, 2, frozenset())
    second = keeper.refresh([user_term("c")])
    assert (second.spending.items, second.spending.requests) == (0, 0)
    remote.opened.set()
    for _ in range(2):
        assert remote.answered.acquire(timeout=30)
    changed: set[str] = set()
    for _ in range(1000):  # a delivery is on its way from one thread to the other
        changed.update(keeper.refresh([]).changed)
        if len(changed) == 2:
            break
    assert changed == {user_term("a"), user_term("b")}
    assert keeper.store.term("followers", user_term("a")) == integer(1)
