"""TMA, SMA (Mouratidis et al. 2006), CPM/w, SNN (Mouratidis and Papadias 2007): grids of points.

Every query is listed in the cells that its answer depends on, its *influence region*. The queries
of a cell process its arrivals and expiries. TMA and CPM/w hold a query's best k. SMA and SNN hold
the k-skyband of the points at least as good as the k-th best at the last computation. If fewer than
k are left, the answer is computed from scratch, the best cell first, until no cell can hold better
points. TMA and SMA are for scores that rise with every coordinate, CPM/w and SNN for distances;
here only the scoring function differs.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from acquatop.topk.contract import FloatArray
from acquatop.topk.sliding.contract import Event

Point = tuple[float, ...]


@dataclass
class Query:
    """Query: its scoring, its cells from best to worst, and its best points, worst first."""

    merit: Callable[[Point], float]
    cells: list[int]
    reach: list[float]
    """Upper bound of the merit in each of these cells."""
    held: list[Event] = field(default_factory=list)
    dominators: dict[int, int] = field(default_factory=dict)
    bar: float = -np.inf
    listed: int = 0
    """Number of cells in which the query is listed."""


class Baseline:
    """TMA and CPM/w; with ``skyband`` SMA and SNN. Points lie in the unit cube."""

    def __init__(self, k: int, n: int, resolution: int, dimensions: int, *, skyband: bool) -> None:
        self.k = k
        self.n = n
        self._resolution = resolution
        self._skyband = skyband
        self._window: deque[tuple[int, int, Point]] = deque()
        self._points: list[dict[int, Point]] = [{} for _ in range(resolution**dimensions)]
        self._interested: list[set[int]] = [set() for _ in self._points]
        self._queries: list[Query] = []
        self._dimensions = dimensions
        self.position = 0

    def nearest_to(self, centre: Sequence[float]) -> None:
        """Add a query for the points nearest to one: CPM/w and SNN."""
        low = self._corners() / self._resolution
        at = np.array(centre)
        apart = np.maximum(0.0, np.maximum(low - at, at - low - 1 / self._resolution))
        self._register(lambda point: -_square(point, centre), -(apart**2).sum(axis=1))

    def greatest_sum(self, weights: Sequence[float]) -> None:
        """Add a query for the points with the greatest weighted sum: TMA and SMA."""
        high = (self._corners() + 1) / self._resolution
        self._register(
            lambda point: sum(weight * each for weight, each in zip(weights, point, strict=True)),
            (high * np.array(weights)).sum(axis=1),
        )

    def add(self, points: FloatArray) -> None:
        """Take in points, one by one."""
        for point in map(tuple, points.tolist()):
            short = self._expire()
            cell = self._cell(point)
            self._window.append((self.position, cell, point))
            self._points[cell][self.position] = point
            for number in self._interested[cell]:
                query = self._queries[number]
                merit = query.merit(point)
                if merit >= query.bar:
                    self._insert(query, (merit, self.position))
            for number in short:
                if len(self._queries[number].held) < self.k:
                    self._compute(number)
            self.position += 1

    def top(self, number: int) -> list[int]:
        """Return the positions of a query's best, best first."""
        return [position for _, position in self._queries[number].held[-self.k :][::-1]]

    def _register(self, merit: Callable[[Point], float], reach: FloatArray) -> None:
        order = np.argsort(-reach)
        self._queries.append(Query(merit, order.tolist(), reach[order].tolist()))
        self._compute(len(self._queries) - 1)

    def _expire(self) -> list[int]:
        """Remove the point that leaves the window; return the queries that lose a point."""
        if len(self._window) < self.n:
            return []
        position, cell, point = self._window.popleft()
        del self._points[cell][position]
        short = []
        for number in self._interested[cell]:
            held = self._queries[number].held
            event = (self._queries[number].merit(point), position)
            at = bisect_left(held, event)
            if at < len(held) and held[at] == event:
                del held[at]
                self._queries[number].dominators.pop(position, None)
                short.append(number)
        return short

    def _insert(self, query: Query, event: Event) -> None:
        """Take in an arrival that is at least as good as the bar."""
        insort(query.held, event)
        if not self._skyband:
            del query.held[: -self.k]
            query.bar = query.held[0][0] if len(query.held) == self.k else query.bar
            return
        query.dominators[event[1]] = 0
        for other in query.held[: bisect_left(query.held, event)]:
            query.dominators[other[1]] += 1
        query.held = [other for other in query.held if query.dominators[other[1]] < self.k]

    def _compute(self, number: int) -> None:
        """Compute a query's best from scratch, and list the query in all visited cells."""
        query = self._queries[number]
        query.held = []
        looked_at = 0
        for cell, reach in zip(query.cells, query.reach, strict=True):
            if len(query.held) >= self.k and query.held[-self.k][0] > reach:
                break
            query.held += [
                (query.merit(point), position) for position, point in self._points[cell].items()
            ]
            query.held.sort()
            del query.held[: -self.k]
            looked_at += 1
        for cell in query.cells[query.listed : looked_at]:
            self._interested[cell].add(number)
        for cell in query.cells[looked_at : query.listed]:
            self._interested[cell].discard(number)
        query.listed = looked_at
        query.bar = query.held[0][0] if len(query.held) == self.k else -np.inf
        query.dominators = {
            position: sum(newer > position for _, newer in query.held[at + 1 :])
            for at, (_, position) in enumerate(query.held)
        }

    def _cell(self, point: Point) -> int:
        cell = 0
        for each in point:
            cell = cell * self._resolution + min(self._resolution - 1, int(each * self._resolution))
        return cell

    def _corners(self) -> FloatArray:
        """Return the cells' indices along each axis, one row per cell."""
        return np.stack(
            np.unravel_index(np.arange(len(self._points)), (self._resolution,) * self._dimensions),
            axis=1,
        )


def _square(point: Point, centre: Sequence[float]) -> float:
    return sum((one - other) ** 2 for one, other in zip(point, centre, strict=True))
