"""Bounds of scores, given the values in the replica."""

from __future__ import annotations

import math

import numpy as np

from acquatop.ingest.scoring import ReplicaScoring
from replica.store import ReplicaStore
from tests.support.worlds import bound, catalog_text, integer, query_text, user_term


def scoring(score: str, followers: dict[str, str]) -> ReplicaScoring:
    store = ReplicaStore("user", ["user", "followers"])
    rows = [{"user": user_term(user), "followers": term} for user, term in followers.items()]
    store.put([user_term(user) for user in [*followers, "gone"]], rows, now=0.0)
    return ReplicaScoring(bound(query_text(score=score), catalog_text()).plan.score, store)


def keys(*users: str) -> np.ndarray:
    return np.array([user_term(user) for user in users], dtype=object)


def test_the_reach_of_keys_is_that_of_their_present_values() -> None:
    both = scoring("2 * ?mentions + ?followers", {"a": integer(5), "b": integer(7)})
    assert both.reach((1.0,), (3.0,), keys("a", "b")) == 13.0
    assert both.reach((1.0,), (3.0,), keys("a")) == 11.0
    assert both.reach((1.0,), (3.0,)) == math.inf


def test_a_key_that_the_remote_does_not_have_reaches_nothing() -> None:
    assert (
        scoring("?mentions + ?followers", {"a": integer(5)}).reach((1.0,), (3.0,), keys("gone"))
        == -math.inf
    )


def test_a_value_that_is_no_number_may_still_leave_a_score() -> None:
    odd = scoring("COALESCE(?mentions * ?followers, 10 - ?mentions)", {"a": '"n/a"'})
    (merit,) = odd.merits(keys("a"), (np.array([2.0]),))
    assert merit == 8.0
    assert odd.reach((2.0,), (2.0,), keys("a")) >= merit
