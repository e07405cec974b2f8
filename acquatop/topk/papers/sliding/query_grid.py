"""Regular grid over space: finds the queries that a point may affect (Section 6.1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray

_SLICE = 1_024
"""Largest number of points paired with queries at once, to bound memory."""
_SLACK = 1e-12
"""Margin added to spheres, so that rounding hides no cell that they touch."""


@dataclass(frozen=True)
class Pairs:
    """Queries and points within their reach, with squared distances: columns, by point."""

    queries: IntArray
    points: IntArray
    squares: FloatArray

    def __len__(self) -> int:
        return len(self.queries)


class QueryGrid:
    """Queries, identified by numbers, in all cells that their spheres of interest touch.

    Cells are equal cubes of the unit cube; points outside belong to the nearest cell. With c cells
    touched in all, building takes O(c·d); a point takes O(d) for each of the queries in its cell. A
    sphere of infinite radius is in all cells, of which there are ``resolution`` to the power of the
    dimensions. Radii are given as squares, so that they are compared with squared distances without
    a root.

    >>> reach = np.array([0.04, 0.04])
    >>> grid = QueryGrid(np.array([[0.1, 0.1], [0.9, 0.9]]), reach, resolution=10)
    >>> pairs = grid.pairs(np.array([[0.2, 0.2], [0.5, 0.5], [0.15, 0.1]]), reach)
    >>> pairs.queries.tolist(), pairs.points.tolist()
    ([0, 0], [0, 2])
    """

    def __init__(self, centres: FloatArray, squares: FloatArray, resolution: int) -> None:
        self._centres = centres
        self._resolution = resolution
        queries, cells = self._touched(squares)
        order = np.argsort(cells, kind="stable")
        self._queries = queries[order]
        self._starts = np.searchsorted(cells[order], np.arange(resolution ** centres.shape[1] + 1))

    def pairs(self, points: FloatArray, squares: FloatArray) -> Pairs:
        """Return the pairs of points and queries within the queries' radii, border included.

        The radii must not be greater than those that the grid was made for.
        """
        starts = range(0, len(points), _SLICE)
        several = [self._pairs(points[start : start + _SLICE], squares, start) for start in starts]
        if not several:
            return Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
        return Pairs(
            np.concatenate([each.queries for each in several]),
            np.concatenate([each.points for each in several]),
            np.concatenate([each.squares for each in several]),
        )

    def _pairs(self, points: FloatArray, within: FloatArray, start: int) -> Pairs:
        cells = self._cells(points)
        counts = self._starts[cells + 1] - self._starts[cells]
        ends = np.cumsum(counts)
        at = np.repeat(np.arange(len(points)), counts)
        places = np.arange(len(at)) + np.repeat(self._starts[cells] - (ends - counts), counts)
        queries = self._queries[places]
        squares = squared_distances(self._centres[queries], points[at])
        near = (squares <= within[queries]).nonzero()[0]
        return Pairs(queries[near], at[near] + start, squares[near])

    def _cells(self, points: FloatArray) -> IntArray:
        """Return the numbers of the points' cells."""
        along = self._along(points)
        cells = along[:, 0]
        for axis in range(1, points.shape[1]):
            cells = cells * self._resolution + along[:, axis]
        return cells

    def _along(self, points: FloatArray) -> IntArray:
        """Return the cells' numbers along each axis."""
        return np.clip(points * self._resolution, 0, self._resolution - 1).astype(np.int64)

    def _touched(self, squares: FloatArray) -> tuple[IntArray, IntArray]:
        """Return queries with each of the cells that their spheres touch, axis by axis."""
        queries = np.arange(len(squares))
        cells = np.zeros(len(squares), dtype=np.int64)
        rest = squares
        for axis in range(self._centres.shape[1]):
            centres = self._centres[queries, axis]
            reach = np.sqrt(rest) + _SLACK
            first, last = self._along(centres - reach), self._along(centres + reach)
            counts = last - first + 1
            ends = np.cumsum(counts)
            of = np.repeat(np.arange(len(queries)), counts)
            along = np.arange(len(of)) - np.repeat(ends - counts, counts) + first[of]
            # The radius left for the other axes, in the slice of the sphere that this cell cuts.
            gap = self._gap(centres[of], along)
            queries, cells = queries[of], cells[of] * self._resolution + along
            rest = np.maximum(0.0, rest[of] - gap * gap)
        return queries, cells

    def _gap(self, values: FloatArray, along: IntArray) -> FloatArray:
        """Return the distances of values from cells along an axis.

        The outermost cells have no end.
        """
        below = np.where(along == 0, -np.inf, along / self._resolution)
        above = np.where(along == self._resolution - 1, np.inf, (along + 1) / self._resolution)
        return np.maximum(0.0, np.maximum(below - values, values - above) - _SLACK)


def squared_distances(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return the squared distances of points from others, row by row.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).tolist()
    [25.0]
    """
    apart = some - others
    squares: FloatArray = (apart * apart).sum(axis=1)
    return squares
