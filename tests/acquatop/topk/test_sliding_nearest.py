"""Many queries for the nearest of the last points, beside sorting the window for each after every
point.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import FloatArray
from acquatop.topk.papers.sliding.nearest import NearestQueries
from acquatop.topk.papers.sliding.query_grid import QueryGrid, squared_distances
from acquatop.topk.sliding.block_skyline import BlockSkyline


def nearest(centre: FloatArray, points: FloatArray, k: int, n: int, position: int) -> list[int]:
    window = range(max(0, position - n + 1), position + 1)
    squares = {
        at: float(squared_distances(centre[None, :], points[at : at + 1])[0]) for at in window
    }
    placed = [at for at in window if np.isfinite(squares[at])]
    return sorted(placed, key=lambda at: (squares[at], -at))[:k]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    dimensions=st.integers(1, 4),
    k=st.integers(1, 5),
    n=st.integers(1, 20),
    resolution=st.sampled_from([1, 2, 7]),
    kind=st.sampled_from(
        ["anywhere", "on a lattice", "far outside", "without a place", "in one spot"]
    ),
)
def test_after_every_point_the_nearest_are_those_of_the_sorted_window(
    seed: int, dimensions: int, k: int, n: int, resolution: int, kind: str
) -> None:
    chance = np.random.default_rng(seed)
    centres, points = chance.random((4, dimensions)), chance.random((50, dimensions))
    if kind == "on a lattice":
        centres, points = np.round(centres, 1), np.round(points, 1)
    elif kind == "far outside":
        points = 40 * points - 20
    elif kind == "without a place":
        points[chance.random(50) < 0.4, 0] = chance.choice([np.nan, np.inf, -np.inf])
    elif kind == "in one spot":
        points[:] = centres[0]
    held = NearestQueries(centres, k, n, resolution)
    while held.position < len(points):
        start = held.position
        before = [held.top(query) for query in range(4)]
        changes = held.add(points[start : start + int(chance.integers(1, 20))])
        held._check()
        for query in range(4):
            for position in range(start, held.position):
                answer = changes.of(query).applied(before[query], position)
                assert answer.positions.tolist() == nearest(centres[query], points, k, n, position)
    assert held.rejected == np.count_nonzero(~np.isfinite(points[:, 0]))


@pytest.mark.parametrize("dimensions", [2, 3, 4])
def test_many_queries_answer_as_each_would_alone(dimensions: int) -> None:
    chance = np.random.default_rng(dimensions)
    centres, points = chance.random((60, dimensions)), chance.random((5_000, dimensions))
    points[2_000:3_000] = 0.2 + points[2_000:3_000] / 10  # a crowd for a while
    held = NearestQueries(centres, k=5, n=900)
    alone = [BlockSkyline(k=5, n=900) for _ in centres]
    for start in range(0, 5_000, 1_700):
        batch = points[start : start + 1_700]
        found = held.add(batch)
        for query, one in enumerate(alone):
            expected = one.add(-squared_distances(centres[query][None, :], batch))
            assert found.of(query).after.tolist() == expected.after.tolist()
            assert found.of(query).entered.tolist() == expected.entered.tolist()
            assert found.of(query).left.tolist() == expected.left.tolist()


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    dimensions=st.integers(1, 4),
    resolution=st.sampled_from([1, 3, 10]),
    radius=st.sampled_from([0.0, 0.05, 0.3, 2.0, np.inf]),
)
def test_the_grid_finds_all_points_within_reach_and_no_others(
    seed: int, dimensions: int, resolution: int, radius: float
) -> None:
    chance = np.random.default_rng(seed)
    centres, points = (
        np.round(chance.random((7, dimensions)), 1),
        3 * np.round(chance.random((40, dimensions)), 1) - 1,
    )
    squares = np.full(7, radius**2)
    pairs = QueryGrid(centres, squares, resolution).pairs(points, squares)
    expected = {
        (query, at)
        for query in range(7)
        for at in range(40)
        if squared_distances(centres[query : query + 1], points[at : at + 1])[0] <= squares[query]
    }
    assert len(pairs) == len(expected)
    assert set(zip(pairs.queries.tolist(), pairs.points.tolist(), strict=True)) == expected


def test_a_query_without_near_points_waits_for_them() -> None:
    held = NearestQueries(np.array([[0.5, 0.5]]), k=2, n=4)
    assert len(held.add(np.empty((0, 2)))) == 0
    changes = held.add(np.array([[0.5, 0.5]]))
    assert changes.of(0).entered.tolist() == [0]
    assert held.top(0).positions.tolist() == [0]
    assert len(held) == 1
