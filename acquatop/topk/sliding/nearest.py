"""The k nearest of the last n points to each of many queries, after every point.

There is one window, one grid, and blocks. This is :mod:`acquatop.topk.sliding.block_skyline` for
all queries at once, with the distance as the score, and a grid instead of the comparisons. A
query's bar is a sphere around it, constant for a block, and an arrival is compared only with
queries whose spheres touch its cell. The points of a window are held once for all queries, as in
the paper's SNN and CPM/w, so no query needs a k-skyband.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.sliding.block_skyline import half
from acquatop.topk.sliding.contract import Best, ChangeLog, Changes, check_sizes
from acquatop.topk.sliding.kth_distance import kth_squares, with_ties
from acquatop.topk.sliding.live_top import LiveTop
from acquatop.topk.sliding.query_grid import FEW, Box, NoGrid, Pairs, QueryGrid, cells_per_axis

_CHUNK = 8_192
"""Largest number of arrivals that are compared with the same spheres."""
_FIRST_CHUNK = 256
"""The same while fewer than k stay for a query; later as many as there have been."""
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
        return self._between(start, stop)

    def each(self) -> Iterator[tuple[int, Changes]]:
        """Yield the queries with changes, and these."""
        edges = np.flatnonzero(np.diff(self.queries, prepend=-1, append=-1)).tolist()
        for start, stop in pairwise(edges):
            yield int(self.queries[start]), self._between(start, stop)

    def _between(self, start: int, stop: int) -> Changes:
        every = self.changes
        return Changes(
            every.after[start:stop],
            every.entered[start:stop],
            every.merits[start:stop],
            every.left[start:stop],
        )


class NearestQueries:
    """Exact nearest points. A merit is the negative squared distance, or that of its root.

    Queries come and go; each sees the points from ``since`` on. For q queries and points in random
    order and everywhere, a point takes O(d) for each query whose sphere touches its cell, 4·k·q/n
    times a few microseconds, and its share of one search for each query's sphere per block. Memory:
    the last n points, and about 2k events per query. A point with a coordinate that is NaN has its
    place in the window and is near to no query.

    >>> held = NearestQueries(dimensions=2, n=2)
    >>> held.join((0.0, 0.0), k=1), held.join((1.0, 1.0), k=1)
    (0, 1)
    >>> found = held.add(np.array([[0.5, 0.0], [1.0, 0.75], [0.25, 0.0]]))
    >>> found.queries.tolist(), found.changes.entered.tolist(), held.top(1).positions.tolist()
    ([0, 0, 1, 1], [0, 2, 0, 1], [1])
    """

    def __init__(
        self, dimensions: int, n: int, *, is_root: bool = False, resolution: int | None = None
    ) -> None:
        """Hold the last ``n`` points, in a grid of ``resolution`` cells per axis."""
        check_sizes(1, n)
        self.n = n
        self.position = 0
        self.rejected = 0
        self._is_root = is_root
        self._resolution = resolution or cells_per_axis(dimensions)
        self._block = np.full((half(n), dimensions), np.nan)
        self._last = self._block.copy()
        self._filled = 0
        self._until = -1
        """Position up to which points leave the window within this block."""
        self._joined = 0
        self._numbers: IntArray = np.empty(0, dtype=np.int64)
        """Queries, ascending; the columns below are in their order."""
        self._centres: FloatArray = np.empty((0, dimensions))
        self._ks: IntArray = np.empty(0, dtype=np.int64)
        self._since: IntArray = np.empty(0, dtype=np.int64)
        self._live: list[LiveTop] = []
        self._next_leaving: IntArray = np.empty(0, dtype=np.int64)
        self._squares: FloatArray = np.empty(0)
        """Squared radii within which points matter."""
        self._grid: QueryGrid | NoGrid | None = None
        self._grid_squares = self._squares
        """Squared radii that the grid was made for."""

    # Queries --------------------------------------------------------------------------------------

    def join(self, centre: tuple[float, ...], k: int, since: int | None = None) -> int:
        """Ask for the ``k`` nearest to a centre; return the query's number.

        ``since`` is the position of the first point that counts, the next one unless it is given.
        It is given for an empty structure only.
        """
        check_sizes(k, self.n)
        number = self._joined
        self._joined += 1
        self._numbers = np.append(self._numbers, number)
        self._centres = np.vstack((self._centres, np.array(centre, dtype=np.float64)))
        self._ks = np.append(self._ks, k)
        self._since = np.append(self._since, self.position if since is None else since)
        self._live.append(LiveTop(k, self.n, (), self._until))
        self._next_leaving = np.append(self._next_leaving, _NEVER)
        self._squares = np.append(self._squares, math.inf)
        self._grid = None
        return number

    def leave(self, query: int) -> None:
        """Remove a query."""
        at = self._at(query)
        self._numbers, self._ks, self._since, self._next_leaving = (
            np.delete(each, at)
            for each in (self._numbers, self._ks, self._since, self._next_leaving)
        )
        self._squares = np.delete(self._squares, at)
        self._centres = np.delete(self._centres, at, axis=0)
        del self._live[at]
        self._grid = None

    def top(self, query: int) -> Best:
        """Return the nearest of the last n points to a query."""
        return self._live[self._at(query)].top()

    def _at(self, query: int) -> int:
        at = int(np.searchsorted(self._numbers, query))
        if at == len(self._numbers) or self._numbers[at] != query:
            raise KeyError(query)
        return at

    # Points ---------------------------------------------------------------------------------------

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
        return _together({int(self._numbers[at]): log for at, log in logs.items()})

    def window(self) -> FloatArray:
        """Return the last n points, oldest first; NaN before the first."""
        return np.concatenate(
            (self._block[self._filled :], self._last, self._block[: self._filled])
        )[-self.n :]

    def __len__(self) -> int:
        return min(self.position, self.n)

    def _take(self, points: FloatArray, logs: dict[int, ChangeLog]) -> None:
        """Add points that fit into the block."""
        self._block[self._filled : self._filled + len(points)] = points
        placed = _placed(points)
        self.rejected += len(points) - len(placed)
        if self._grid is None:
            self._grid = self._new_grid(self._block[: self._filled + len(points)])
        events = self._events(self._grid, points[placed], placed + self.position)
        self._filled += len(points)
        self.position += len(points)
        leave = (self._next_leaving < self.position).nonzero()[0].tolist()
        for at in sorted({*events, *leave}):
            live = self._live[at]
            live.go_on(events.get(at, ()), self.position - 1, logs.setdefault(at, ChangeLog()))
            live.trim()
            self._note(at, live)
        if self.position == self._filled or self._has_shrunk:
            self._grid = None

    @property
    def _has_shrunk(self) -> bool:
        """True if a sphere that was the whole space is none any more."""
        return bool((np.isinf(self._grid_squares) & np.isfinite(self._squares)).any())

    def _new_grid(self, points: FloatArray) -> QueryGrid | NoGrid:
        """Return the grid of the present spheres, with cells where most of some points are."""
        self._grid_squares = self._squares.copy()
        if len(self._ks) <= FEW:
            return NoGrid(self._centres)
        return QueryGrid(self._centres, self._squares, Box.around(points, self._resolution))

    def _begin(self) -> None:
        """Begin the next block with each query's sphere around the k nearest of those that stay."""
        leaving, last = self._last, self._block
        start = self.position - len(last)
        self._until = until = self.position + len(last) - 1 - self.n
        self._squares = self._reach(last[until + 1 - start :], until + 1)
        before = np.concatenate((leaving, last))[-self.n :]
        self._grid = self._new_grid(before)
        placed = _placed(before)
        positions = placed + self.position - len(before)
        events = self._events(self._grid, before[placed], positions)
        for at, k in enumerate(self._ks.tolist()):
            self._live[at] = live = LiveTop(k, self.n, events.get(at, ()), until)
            live.trim()
            self._note(at, live)
        self._last, self._block, self._filled = last, leaving, 0

    def _note(self, at: int, live: LiveTop) -> None:
        """Note a query's bar, and the departure of the next of its events."""
        bar = -live.bar
        self._squares[at] = with_ties(bar * bar, is_root=True) if self._is_root else bar
        self._next_leaving[at] = _NEVER if live.next_leaving is None else live.next_leaving

    def _reach(self, points: FloatArray, start: int) -> FloatArray:
        """Return the squared distance of each query's k-th nearest of points from a position on.

        Infinity if there are fewer.
        """
        squares = np.full(len(self._centres), math.inf)
        placed = _placed(points)
        points, positions = points[placed], placed + start
        known = len(points) - np.searchsorted(positions, self._since)
        some = (known >= self._ks).nonzero()[0]
        if not len(some):
            return squares

        def admitted(rest: IntArray, pairs: Pairs) -> Pairs:
            since = self._since[some[rest]]
            return pairs.take((positions[pairs.points] >= since[pairs.queries]).nonzero()[0])

        found = kth_squares(
            self._centres[some],
            self._ks[some],
            points,
            Box.around(points, self._resolution),
            guess=self._squares[some],
            admitted=admitted,
        )
        squares[some] = with_ties(found, is_root=self._is_root)
        return squares

    def _events(
        self, grid: QueryGrid | NoGrid, points: FloatArray, positions: IntArray
    ) -> dict[int, list[tuple[float, int]]]:
        """Return the events of each query, by the positions of points, which are ascending."""
        pairs = grid.pairs(points, self._squares)
        counts = positions[pairs.points] >= self._since[pairs.queries]
        pairs = pairs if counts.all() else pairs.take(counts.nonzero()[0])
        order = np.argsort(pairs.queries, kind="stable")
        queries = pairs.queries[order]
        merits, at = self._merits(pairs.squares[order]), positions[pairs.points[order]]
        edges = np.flatnonzero(np.diff(queries, prepend=-1, append=-1))
        events = list(zip(merits.tolist(), at.tolist(), strict=True))
        return {
            query: events[start:stop]
            for query, start, stop in zip(
                queries[edges[:-1]].tolist(), edges.tolist(), edges[1:].tolist(), strict=False
            )
        }

    def _merits(self, squares: FloatArray) -> FloatArray:
        return -np.sqrt(squares) if self._is_root else -squares

    def _check(self) -> None:
        """Assert every invariant. O(q·n·log n)."""
        window = self.window()
        for at, live in enumerate(self._live):
            live._check()
            own = window[max(0, int(self._since[at]) - self.position + self.n) :]
            own = own[_placed(own)]
            merits = -np.sort(((self._centres[at] - own) ** 2).sum(axis=1))[: self._ks[at]]
            merits = -np.sqrt(-merits) if self._is_root else merits
            assert live.top().merits.tolist() == merits.tolist()


def _placed(points: FloatArray) -> IntArray:
    """Return the positions of points with all coordinates."""
    return np.flatnonzero(~np.isnan(points).any(axis=1))


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
