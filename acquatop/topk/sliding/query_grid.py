"""Regular grid over space: finds the queries that a point may affect (Section 6.1 of the paper)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray

_SLICE = 1_024
"""Largest number of points paired with queries at once, to bound memory."""
_SLACK = 1e-9
"""Margin of a cell, as a share of its size: rounding hides no cell that a sphere touches."""
_ROUNDING = 1e-12
_CELLS = {1: 256, 2: 32}
"""Number of cells per axis, by the number of axes, and :data:`_FEW_CELLS` of more axes."""
_FEW_CELLS = 10
_SAMPLE = 4_096
"""Number of points that a box is measured by."""


def cells_per_axis(axes: int) -> int:
    """Return the number of cells per axis that suits some hundred queries."""
    return _CELLS.get(axes, _FEW_CELLS)


@dataclass(frozen=True)
class Box:
    """Part of space that is cut into cells: its lowest corner, and the size of a cell per axis."""

    low: FloatArray
    size: FloatArray
    resolution: int

    @classmethod
    def around(cls, points: FloatArray, resolution: int) -> Box:
        """Return a box around most of some points, with ``resolution`` cells per axis."""
        points = points[np.isfinite(points).all(axis=1)]
        points = points[:: max(1, len(points) // _SAMPLE)]
        if not len(points):
            points = np.zeros((1, points.shape[1]))
        low, high = np.quantile(points, (0.01, 0.99), axis=0)
        with np.errstate(over="ignore"):
            size = (high - low) / resolution
        return cls(low, np.where((size > 0) & np.isfinite(size), size, 1.0), resolution)

    @classmethod
    def unit(cls, dimensions: int, resolution: int) -> Box:
        """Return the unit cube."""
        return cls(np.zeros(dimensions), np.full(dimensions, 1 / resolution), resolution)

    @property
    def volume(self) -> float:
        """Volume of the box."""
        with np.errstate(over="ignore"):
            return float(np.prod(self.size * self.resolution))

    def along(self, values: FloatArray, axis: int) -> IntArray:
        """Return the cells' numbers along an axis; what is outside belongs to the nearest."""
        with np.errstate(over="ignore"):
            cells = (values - self.low[axis]) / self.size[axis]
        inside: FloatArray = np.clip(cells, 0, self.resolution - 1)
        return inside.astype(np.int64)

    def slack(self, axis: int) -> float:
        """Return the margin of a cell's ends along an axis."""
        low, size = float(self.low[axis]), float(self.size[axis])
        return _SLACK * size + _ROUNDING * (abs(low) + self.resolution * size)

    def gap(self, values: FloatArray, cells: IntArray, axis: int) -> FloatArray:
        """Return the distances of values from cells along an axis.

        The outermost cells have no end.
        """
        low, size = self.low[axis], self.size[axis]
        below = np.where(cells == 0, -np.inf, low + cells * size)
        above = np.where(cells == self.resolution - 1, np.inf, low + (cells + 1) * size)
        gap = np.maximum(below - values, values - above) - self.slack(axis)
        return np.maximum(0.0, gap)


@dataclass(frozen=True)
class Pairs:
    """Queries and points within their reach, with squared distances: columns, by point."""

    queries: IntArray
    points: IntArray
    squares: FloatArray

    def __len__(self) -> int:
        return len(self.queries)

    def take(self, at: IntArray) -> Pairs:
        """Return some of the pairs."""
        return Pairs(self.queries[at], self.points[at], self.squares[at])


FEW = 12
"""Number of queries up to which all distances are computed: that is quicker than a grid."""


class NoGrid:
    """The same as :class:`QueryGrid` for a few queries, from all distances."""

    def __init__(self, centres: FloatArray) -> None:
        self._centres = centres

    def pairs(self, points: FloatArray, squares: FloatArray) -> Pairs:
        """Return the pairs of points and queries within the queries' radii, border included."""
        found = [Pairs(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
        for query, reach in enumerate(squares.tolist()):
            own = squared_distances(self._centres[query][None, :], points)
            at = (own <= reach).nonzero()[0]
            found.append(Pairs(np.full(len(at), query), at, own[at]))
        return Pairs(
            np.concatenate([each.queries for each in found]),
            np.concatenate([each.points for each in found]),
            np.concatenate([each.squares for each in found]),
        )


class QueryGrid:
    """Queries, identified by numbers, in all cells that their spheres of interest touch.

    Cells are equal boxes of a ``box``; points outside belong to the nearest cell. With c cells
    touched in all, building takes O(c·d); a point takes O(d) for each of the queries in its cell. A
    sphere of infinite radius is in all cells, of which there are ``resolution`` to the power of the
    dimensions. Radii are given as squares, so that they are compared with squared distances without
    a root.

    >>> reach = np.array([0.04, 0.04])
    >>> grid = QueryGrid(np.array([[0.1, 0.1], [0.9, 0.9]]), reach, Box.unit(2, 10))
    >>> pairs = grid.pairs(np.array([[0.2, 0.2], [0.5, 0.5], [0.15, 0.1]]), reach)
    >>> pairs.queries.tolist(), pairs.points.tolist()
    ([0, 0], [0, 2])
    """

    def __init__(self, centres: FloatArray, squares: FloatArray, box: Box) -> None:
        self._centres = centres
        self._box = box
        queries, cells = self._touched(squares)
        order = np.argsort(cells, kind="stable")
        self._queries = queries[order]
        self._starts = np.searchsorted(
            cells[order], np.arange(box.resolution ** centres.shape[1] + 1)
        )

    def pairs(self, points: FloatArray, squares: FloatArray) -> Pairs:
        """Return the pairs of points and queries within the queries' radii, border included.

        The radii must not be greater than those that the grid was made for. No coordinate is NaN.
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
        cells = self._box.along(points[:, 0], 0)
        for axis in range(1, points.shape[1]):
            cells = cells * self._box.resolution + self._box.along(points[:, axis], axis)
        return cells

    def _touched(self, squares: FloatArray) -> tuple[IntArray, IntArray]:
        """Return queries with each of the cells that their spheres touch, axis by axis."""
        box = self._box
        queries, cells, rest = np.arange(len(squares)), np.zeros(len(squares), np.int64), squares
        for axis in range(self._centres.shape[1]):
            centres = self._centres[queries, axis]
            reach = np.sqrt(rest) * (1 + _ROUNDING) + box.slack(axis)
            first, last = box.along(centres - reach, axis), box.along(centres + reach, axis)
            counts = last - first + 1
            ends = np.cumsum(counts)
            of = np.repeat(np.arange(len(queries)), counts)
            along = np.arange(len(of)) - np.repeat(ends - counts, counts) + first[of]
            # The radius left for the other axes, in the slice of the sphere that this cell cuts.
            gap = box.gap(centres[of], along, axis)
            queries, cells = queries[of], cells[of] * box.resolution + along
            rest = rest[of]
            left = np.maximum(0.0, rest * (1 + _ROUNDING) - gap * gap * (1 - _ROUNDING))
            rest = np.where(np.isinf(rest), rest, left)
        return queries, cells


def squared_distances(some: FloatArray, others: FloatArray) -> FloatArray:
    """Return the squared distances of points from others, row by row, added axis by axis.

    >>> squared_distances(np.array([[0.0, 0.0]]), np.array([[3.0, 4.0]])).tolist()
    [25.0]
    """
    with np.errstate(over="ignore"):
        apart = some - others
        squares: FloatArray = apart[:, 0] * apart[:, 0]
        for axis in range(1, apart.shape[1]):
            squares = squares + apart[:, axis] * apart[:, axis]
    return squares
