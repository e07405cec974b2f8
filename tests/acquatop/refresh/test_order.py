"""In which order keys are asked for."""

from __future__ import annotations

import numpy as np
import pytest

from acquatop.refresh.order import RefreshOrder
from acquatop.refresh.proposers import Proposed
from replica.rankers import DEFAULT_RANKERS, Candidates, RankerError
from replica.spending.allowance import SPEND_ALL, ItemAllowance
from replica.store import ReplicaStore
from tests.support.worlds import integer


def store_of(fetched: dict[str, float], absent: dict[str, float]) -> ReplicaStore:
    store = ReplicaStore("k", ["v"])
    for key, at in fetched.items():
        store.put([key], [{"k": key, "v": integer(1)}], at)
    for key, at in absent.items():
        store.put([key], [], at)
    return store


def proposed(keys: str) -> Proposed:
    return Proposed(tuple(keys), np.arange(len(keys), 0, -1.0), np.full(len(keys), 3))


def order(policy: str = "TSM", wait: float = 0.0, now: float = 100.0) -> str:
    store = store_of({"a": 9.0, "b": 2.0, "c": 5.0}, {"x": 80.0, "y": 99.0})
    make = RefreshOrder(
        store,
        DEFAULT_RANKERS[policy](),
        slide_ms=1000,
        ask_absent_after=wait,
        random=np.random.default_rng(0),
    )
    return "".join(make(["u", "w"], proposed("abxc"), ["y", "x"], window=0, k=2, now=now).keys)


def test_unknown_keys_come_first_then_the_ranker_s_then_those_that_were_absent() -> None:
    assert order("TSM") == "uwabcyx"
    assert order("LRU") == "uwbcayx"
    assert order("WST") == "uwyx"


def test_absent_keys_have_a_clock_of_their_own() -> None:
    assert order(wait=10.0) == "uwabcx"
    assert order(wait=21.0) == "uwabc"
    assert order(wait=21.0, now=120.0) == "uwabcyx"


def test_a_ranker_that_gives_no_order_is_named() -> None:
    class Odd:
        def __call__(self, candidates: Candidates) -> np.ndarray:
            return np.array([7])

    make = RefreshOrder(
        store_of({"a": 1.0}, {}), Odd(), slide_ms=1000, random=np.random.default_rng(0)
    )
    with pytest.raises(RankerError, match="Odd returned positions that none of 1 candidates has"):
        make([], proposed("a"), [], window=0, k=1, now=2.0)


def test_a_ranker_is_told_what_is_known_of_each_candidate() -> None:
    seen: list[Candidates] = []

    class Curious:
        def __call__(self, candidates: Candidates) -> np.ndarray:
            seen.append(candidates)
            return np.arange(len(candidates))

    store = store_of({"a": 9.0, "b": 2.0}, {})
    make = RefreshOrder(store, Curious(), slide_ms=3000, random=np.random.default_rng(0))
    make([], proposed("ba"), [], window=1, k=2, now=10.0)
    (candidates,) = seen
    assert candidates.fetched_at.tolist() == [2.0, 9.0]
    assert candidates.merits.tolist() == [2.0, 1.0]
    assert candidates.remaining.tolist() == [2, 2]
    assert (candidates.now, candidates.slide, candidates.k) == (10.0, 3.0, 2)
    assert store.keys(candidates.rows) == ["b", "a"]


def saving(keys: str, absent: list[str], allowance: ItemAllowance) -> str:
    class FirstAlone:
        def __call__(self, candidates: Candidates) -> np.ndarray:
            return np.arange(min(1, len(candidates)))

    store = store_of({"a": 9.0, "b": 2.0, "c": 5.0}, {"x": 80.0, "y": 99.0})
    make = RefreshOrder(store, FirstAlone(), slide_ms=1000, random=np.random.default_rng(0))
    given = proposed(keys)
    found = make(["u"], given, absent, window=0, k=2, now=100.0, allowance=allowance)
    return "".join(found.keys)


def test_absent_keys_do_not_spend_what_a_ranker_saves() -> None:
    assert saving("abc", ["y", "x"], SPEND_ALL) == "uayx"
    assert saving("abc", ["y", "x"], ItemAllowance(4.0, 4, 9)) == "ua"
    assert saving("abc", ["y", "x"], ItemAllowance(4.0, 5, 9)) == "uay"
    assert saving("abc", ["y", "x"], ItemAllowance(4.0, 9, 9)) == "uayx"


def test_what_a_ranker_has_learned_of_spending_outlives_a_restart() -> None:
    def make() -> RefreshOrder[ReplicaStore]:
        return RefreshOrder(
            store_of({"a": 9.0, "b": 2.0, "c": 5.0}, {}),
            DEFAULT_RANKERS["IMP"](),
            slide_ms=1000,
            random=np.random.default_rng(0),
        )

    def asked(order: RefreshOrder[ReplicaStore], now: float) -> list[str]:
        allowance = ItemAllowance(1.0, 2, 3, 0.5)
        return order([], proposed("abc"), [], window=0, k=2, now=now, allowance=allowance).keys

    one, other, fresh = make(), make(), make()
    for at in range(7):
        asked(one, 10.0 + at)
    other.resume(one.snapshot())
    assert [asked(one, 20.0 + at) for at in range(9)] == [
        asked(other, 20.0 + at) for at in range(9)
    ]
    # An engine that had nothing to remember wrote no part of its ranker.
    before = RefreshOrder(
        store_of({"a": 9.0}, {}),
        DEFAULT_RANKERS["TSM"](),
        slide_ms=1000,
        random=np.random.default_rng(0),
    )
    fresh.resume(before.snapshot())
    assert asked(fresh, 30.0)
