"""Possible new merits of candidates: scores by the query with drawn values."""

from __future__ import annotations

import numpy as np

from acquatop.ingest.scoring import ReplicaScoring
from acquatop.refresh.changed_scores import ChangedMerits
from replica.freshness import ChangeModel
from replica.store import ReplicaStore
from rspql import compile_query
from rspql.plan import TopKPlan
from tests.support.worlds import integer, query_text


def outlook(parts: list[float], *, seed: int = 0) -> ChangedMerits:
    """Return the outlook of users with followers from 10 up, each of whom has gained 100 once."""
    plan = compile_query(query_text(score="1000 * ?mentions + ?followers"))
    assert isinstance(plan, TopKPlan)
    store, keys = ReplicaStore("user", ["followers"]), [f"<urn:{at}>" for at in range(len(parts))]
    for now, more in ((0.0, 0), (10.0, 100)):
        for at, key in enumerate(keys):
            store.put([key], [{"user": key, "followers": integer(10 + at + more)}], now)
    return ChangedMerits(
        ReplicaScoring(plan.score, store),
        store,
        ChangeModel(store.history),
        store.rows(keys),
        (np.array(parts),),
        now=20.0,
        random=np.random.default_rng(seed),
    )


def test_merits_are_scores_of_what_the_stream_says_and_what_the_remote_may_have() -> None:
    drawn = outlook([float(at) for at in range(40)])(np.array([3, 0]), 50)
    assert drawn.shape == (50, 2)
    gained = drawn - [3 * 1000 + 113, 110]
    # In one of fifty a value may be any.
    assert 0.9 < (gained > 0).mean() < 1
    assert 50 < np.median(gained) < 150


def test_nothing_is_said_where_the_stream_s_numbers_are_not_known() -> None:
    drawn = outlook([1.0, float("nan")])(np.arange(2), 5)
    assert np.isnan(drawn).tolist() == [[False, True]] * 5


def test_chance_alone_decides_it() -> None:
    parts = [1.0] * 10
    first, again, other = (outlook(parts, seed=seed)(np.arange(10), 9) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()
