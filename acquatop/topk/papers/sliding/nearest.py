"""The k nearest of the last n points to each of many queries, after every point.

There is one window, one grid, and blocks. This is :mod:`acquatop.topk.sliding.block_skyline` for
all queries at once, with the distance as the score, and a grid instead of the comparisons. A
query's bar is a sphere around it, constant for a block, and an arrival is compared only with
queries whose spheres touch its cell. The points of a window are held once for all queries, as in
SNN and CPM/w, so no query needs a k-skyband.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.papers.sliding.query_grid import Pairs, QueryGrid
from acquatop.topk.sliding.block_skyline import half
from acquatop.topk.sliding.contract import Best, ChangeLog, Changes, check_sizes
from acquatop.topk.sliding.live_top import LiveTop

_CHUNK = 8_192
"""Largest number of arrivals that are compared with the same spheres."""
_FIRST_CHUNK = 256
"""The same at the start, while fewer than k stay; later as many as there have been."""
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class QueryChanges:
    """Changes of several queries' best, by query and then in the order of the points."""

    queries: IntArray
    changes: Changes

    def __len__(self) -> int:
        return len(self.queries)

    def of(self, query: int) -> Changes:
        """Return one query's changes. O(log c)."""
        start, stop = np.searchsorted(self.queries, [query, query + 1])
        all_of = self.changes
        return Changes(
            all_of.after[start:stop],
            all_of.entered[start:stop],
            all_of.merits[start:stop],
            all_of.left[start:stop],
        )


class NearestQueries:
    """Exact nearest points. A merit is the negative squared distance.

    For q queries and points in random order and everywhere, a point takes O(d) for each query whose
    sphere touches its cell, 4·k·q/n times a few microseconds, and its share of one search for each
    query's sphere per block. Memory: the last n points, and about 2k events per query. A point with
    a coordinate that is not finite has its place in the window and is near to no query.

    >>> held = NearestQueries(np.array([[0.0, 0.0], [1.0, 1.0]]), k=1, n=2)
    >>> found = held.add(np.array([[0.5, 0.0], [1.0, 0.75], [0.25, 0.0]]))
    >>> found.queries.tolist(), found.changes.entered.tolist(), held.top(1).positions.tolist()
    ([0, 0, 1, 1], [0, 2, 0, 1], [1])
    """

    def __init__(self, centres: FloatArray, k: int, n: int, resolution: int = 10) -> None:
        """Ask for the ``k`` nearest to each of ``centres``, with ``resolution`` cells per axis."""
        check_sizes(k, n)
        self.k = k
        self.n = n
        self.position = 0
        self.rejected = 0
        self._centres = np.asarray(centres, dtype=np.float64)
        self._resolution = resolution
        queries, dimensions = self._centres.shape
        self._block = np.full((half(n), dimensions), np.nan)
        self._last = self._block.copy()
        self._filled = 0
        self._live = [LiveTop(k, n, (), -1) for _ in range(queries)]
        self._next_leaving = np.full(queries, _NEVER)
        self._squares = np.full(queries, math.inf)
        """Squared radii within which points matter."""
        self._grid = QueryGrid(self._centres, self._squares, resolution)

    def add(self, points: FloatArray) -> QueryChanges:
        """Add the next points of the stream, and return how the queries' best changed with them."""
        logs: dict[int, ChangeLog] = {}
        start = 0
        while start < len(points):
            if self._filled == len(self._block):
                self._begin()
            longest = (
                _CHUNK if np.isfinite(self._squares).all() else max(_FIRST_CHUNK, self._filled)
            )
            stop = min(len(points), start + longest, start + len(self._block) - self._filled)
            self._take(points[start:stop], logs)
            start = stop
        return _together(logs)

    def top(self, query: int) -> Best:
        """Return the nearest of the last n points to a query."""
        return self._live[query].top()

    def __len__(self) -> int:
        return min(self.position, self.n)

    def _take(self, points: FloatArray, logs: dict[int, ChangeLog]) -> None:
        """Add points that fit into the block."""
        self._block[self._filled : self._filled + len(points)] = points
        placed = _placed(points)
        self.rejected += len(points) - len(placed)
        pairs = self._grid.pairs(points[placed], self._squares)
        events = _by_query(pairs, placed + self.position)
        self._filled += len(points)
        self.position += len(points)
        leave = (self._next_leaving < self.position).nonzero()[0].tolist()
        for query in sorted({*events, *leave}):
            live = self._live[query]
            live.go_on(
                events.get(query, ()), self.position - 1, logs.setdefault(query, ChangeLog())
            )
            live.trim()
            self._note(query, live)
        if self.position == self._filled:
            # The first block: the spheres shrink with every chunk.
            self._grid = QueryGrid(self._centres, self._squares, self._resolution)

    def _begin(self) -> None:
        """Begin the next block with each query's sphere around the k nearest of those that stay."""
        leaving, last = self._last, self._block
        start = self.position - len(last)
        until = self.position + len(last) - 1 - self.n
        self._squares = self._reach(last[until + 1 - start :])
        self._grid = QueryGrid(self._centres, self._squares, self._resolution)
        before = np.concatenate((leaving, last))[-self.n :]
        placed = _placed(before)
        events = _by_query(
            self._grid.pairs(before[placed], self._squares), placed + self.position - len(before)
        )
        for query in range(len(self._live)):
            self._live[query] = live = LiveTop(self.k, self.n, events.get(query, ()), until)
            live.trim()
            self._note(query, live)
        self._last, self._block, self._filled = last, leaving, 0

    def _note(self, query: int, live: LiveTop) -> None:
        """Note a query's bar, and the departure of the next of its events."""
        self._squares[query] = -live.bar
        self._next_leaving[query] = _NEVER if live.next_leaving is None else live.next_leaving

    def _reach(self, points: FloatArray) -> FloatArray:
        """Return the squared distance of each query's k-th nearest point.

        Infinity if there are fewer. The first spheres have the size that k points would take,
        spread evenly, or that of the last block. They are doubled for those queries that find
        fewer.
        """
        squares = np.full(len(self._centres), math.inf)
        points = points[_placed(points)]
        if len(points) < self.k:
            return squares
        dimensions = points.shape[1]
        even = (self.k / len(points)) ** (2 / dimensions)
        guess = np.where(np.isfinite(self._squares), np.maximum(self._squares, even / 1_000), even)
        rest = np.arange(len(squares))
        while len(rest):
            grid = QueryGrid(self._centres[rest], guess[rest], self._resolution)
            pairs = grid.pairs(points, guess[rest])
            counts = np.bincount(pairs.queries, minlength=len(rest))
            enough = counts >= self.k
            in_order = pairs.squares[np.lexsort((pairs.squares, pairs.queries))]
            squares[rest[enough]] = in_order[(np.cumsum(counts) - counts)[enough] + self.k - 1]
            rest = rest[~enough]
            guess[rest] *= 4
        return squares

    def _check(self) -> None:
        """Assert every invariant. O(q·n·log n)."""
        window = np.concatenate(
            (self._block[self._filled :], self._last, self._block[: self._filled])
        )[-self.n :]
        for query, live in enumerate(self._live):
            live._check()
            squares = ((self._centres[query] - window[_placed(window)]) ** 2).sum(axis=1)
            nearest = np.sort(squares)[: self.k]
            assert (-self.top(query).merits).tolist() == nearest.tolist()


def _placed(points: FloatArray) -> IntArray:
    """Return the positions of points with finite coordinates."""
    return np.flatnonzero(np.isfinite(points).all(axis=1))


def _by_query(pairs: Pairs, positions: IntArray) -> dict[int, list[tuple[float, int]]]:
    """Return the events of each query, ordered by their positions, which are given by point."""
    order = np.argsort(pairs.queries, kind="stable")
    queries = pairs.queries[order]
    merits, at = -pairs.squares[order], positions[pairs.points[order]]
    edges = np.flatnonzero(np.diff(queries, prepend=-1, append=-1))
    events = list(zip(merits.tolist(), at.tolist(), strict=True))
    return {
        query: events[start:stop]
        for query, start, stop in zip(
            queries[edges[:-1]].tolist(), edges.tolist(), edges[1:].tolist(), strict=False
        )
    }


def _together(logs: dict[int, ChangeLog]) -> QueryChanges:
    """Return the changes of several queries as columns."""
    each = [(query, logs[query].changes()) for query in sorted(logs)]
    changes = [of for _, of in each] or [ChangeLog().changes()]
    return QueryChanges(
        np.repeat(
            np.array([query for query, _ in each], dtype=np.int64), [len(of) for _, of in each]
        ),
        Changes(
            np.concatenate([of.after for of in changes]),
            np.concatenate([of.entered for of in changes]),
            np.concatenate([of.merits for of in changes]),
            np.concatenate([of.left for of in changes]),
        ),
    )
