"""Many queries for the nearest of the last points, beside sorting the window for each after every
point.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.topk.contract import FloatArray
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.topk.sliding.nearest import NearestQueries
from acquatop.topk.sliding.query_grid import FEW, Box, QueryGrid, squared_distances


@pytest.fixture(autouse=True, params=["on a grid", "compared"])
def few(request: pytest.FixtureRequest) -> Iterator[None]:
    """Let few queries be on a grid, too."""
    most = 0 if request.param == "on a grid" else FEW
    with (
        patch("acquatop.topk.sliding.nearest.FEW", most),
        patch("acquatop.topk.sliding.kth_distance.FEW", most),
    ):
        yield


def asking(
    centres: FloatArray, ks: Sequence[int], n: int, resolution: int | None = None, **more: bool
) -> NearestQueries:
    held = NearestQueries(centres.shape[1], n, resolution=resolution, **more)
    for centre, k in zip(centres.tolist(), ks, strict=True):
        held.join(tuple(centre), k)
    return held


def nearest(
    centre: FloatArray, points: FloatArray, k: int, n: int, position: int, *, is_root: bool = False
) -> list[int]:
    squares = squared_distances(centre[None, :], points)
    merits = np.sqrt(squares) if is_root else squares
    window = range(max(0, position - n + 1), position + 1)
    placed = [at for at in window if not np.isnan(points[at]).any()]
    return sorted(placed, key=lambda at: (merits[at], -at))[:k]


def points_of(kind: str, chance: np.random.Generator, dimensions: int) -> FloatArray:
    points = chance.random((50, dimensions))
    if kind == "on a lattice":
        points = np.round(points, 1)
    elif kind == "far outside":
        points = 40 * points - 20
    elif kind == "without a place":
        points[chance.random(50) < 0.4, 0] = chance.choice([np.nan, np.inf, -np.inf])
    elif kind == "in one spot":
        points[:] = 0.5
    elif kind == "huge":
        points = np.exp(700 * (points - 0.5))
    return points


KINDS = ["anywhere", "on a lattice", "far outside", "without a place", "in one spot", "huge"]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    dimensions=st.integers(1, 4),
    n=st.integers(1, 20),
    resolution=st.sampled_from([1, 2, 7, None]),
    kind=st.sampled_from(KINDS),
    is_root=st.booleans(),
)
def test_after_every_point_the_nearest_are_those_of_the_sorted_window(
    seed: int, dimensions: int, n: int, resolution: int | None, kind: str, is_root: bool
) -> None:
    chance = np.random.default_rng(seed)
    centres, points = chance.random((4, dimensions)), points_of(kind, chance, dimensions)
    if kind in ("on a lattice", "in one spot"):
        centres = np.round(centres, 1)
    ks = chance.integers(1, 6, 4).tolist()
    held = asking(centres, ks, n, resolution, is_root=is_root)
    while held.position < len(points):
        start = held.position
        before = [held.top(query) for query in range(4)]
        changes = held.add(points[start : start + int(chance.integers(1, 20))])
        assert [query for query, _ in changes.each()] == np.unique(changes.queries).tolist()
        for query in range(4):
            for position in range(start, held.position):
                answer = changes.of(query).applied(before[query], position)
                assert answer.positions.tolist() == nearest(
                    centres[query], points, ks[query], n, position, is_root=is_root
                )
    assert held.rejected == np.count_nonzero(np.isnan(points[:, 0]))


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    dimensions=st.integers(1, 4),
    n=st.integers(1, 20),
    kind=st.sampled_from(KINDS),
)
def test_queries_come_and_go_and_see_what_came_since(
    seed: int, dimensions: int, n: int, kind: str
) -> None:
    chance = np.random.default_rng(seed)
    points = points_of(kind, chance, dimensions)
    held, base = NearestQueries(dimensions, n), 0
    asked: dict[int, tuple[FloatArray, int, int]] = {}
    while base + held.position < len(points):
        now = base + held.position
        for _ in range(int(chance.integers(0, 3))):
            centre, k = chance.random(dimensions), int(chance.integers(1, 5))
            asked[held.join(tuple(centre.tolist()), k)] = centre, k, now
        if asked and chance.random() < 0.3:
            gone = int(chance.choice(list(asked)))
            del asked[gone]
            held.leave(gone)
            with pytest.raises(KeyError):
                held.top(gone)
        held.add(points[now : now + int(chance.integers(0, 12))])
        if chance.random() < 0.3:
            base += held.position - len(held)
            asked, held = resumed(held, asked, base)
        now = base + held.position
        for query, (centre, k, since) in asked.items():
            right = nearest(centre, points, k, min(n, now - since), now - 1)
            assert (held.top(query).positions + base).tolist() == right


def resumed(
    held: NearestQueries, asked: dict[int, tuple[FloatArray, int, int]], base: int
) -> tuple[dict[int, tuple[FloatArray, int, int]], NearestQueries]:
    """Return the same queries over another structure, which is given the window's points."""
    other = NearestQueries(held.window().shape[1], held.n)
    joined = {
        other.join(tuple(centre.tolist()), k, max(0, since - base)): (centre, k, since)
        for centre, k, since in asked.values()
    }
    other.add(held.window()[held.n - len(held) :])
    return joined, other


@pytest.mark.parametrize("dimensions", [2, 3, 4])
def test_many_queries_answer_as_each_would_alone(dimensions: int) -> None:
    chance = np.random.default_rng(dimensions)
    centres, points = chance.random((60, dimensions)), chance.random((5_000, dimensions))
    points[2_000:3_000] = 0.2 + points[2_000:3_000] / 10  # a crowd for a while
    held = asking(centres, [5] * 60, 900)
    alone = [BlockSkyline(k=5, n=900) for _ in centres]
    for start in range(0, 5_000, 1_700):
        batch = points[start : start + 1_700]
        found = held.add(batch)
        held._check()
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
    pairs = QueryGrid(centres, squares, Box.unit(dimensions, resolution)).pairs(points, squares)
    expected = {
        (query, at)
        for query in range(7)
        for at in range(40)
        if squared_distances(centres[query : query + 1], points[at : at + 1])[0] <= squares[query]
    }
    assert len(pairs) == len(expected)
    assert set(zip(pairs.queries.tolist(), pairs.points.tolist(), strict=True)) == expected


def test_a_query_without_near_points_waits_for_them() -> None:
    held = asking(np.array([[0.5, 0.5]]), [2], n=4)
    assert len(held.add(np.empty((0, 2)))) == 0
    changes = held.add(np.array([[0.5, 0.5]]))
    assert changes.of(0).entered.tolist() == [0]
    assert held.top(0).positions.tolist() == [0]
    assert len(held) == 1
