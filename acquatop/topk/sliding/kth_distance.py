"""Distances of the k-th nearest of some points to many centres, on one grid."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.sliding.query_grid import FEW, Box, Pairs, QueryGrid, squared_distances

SquaresT = TypeVar("SquaresT", float, FloatArray)
_ROUNDS = 40
"""Number of times that spheres are doubled before they are taken for the whole space."""
_ROOTS_TIE = 1 + 2.0**-49
"""Factor above which squares have different roots."""


def with_ties(squares: SquaresT, *, is_root: bool) -> SquaresT:
    """Return squares within which are all that have the same distance."""
    return squares * _ROOTS_TIE if is_root else squares


def kth_squares(
    centres: FloatArray,
    ks: IntArray,
    points: FloatArray,
    box: Box,
    *,
    guess: FloatArray | None = None,
    admitted: Callable[[IntArray, Pairs], Pairs] = lambda _, pairs: pairs,
) -> FloatArray:
    """Return the squared distance of each centre's k-th nearest point.

    There must be as many points. The first spheres have the size that k points would take, spread
    evenly, or that of a ``guess``, if that is finite. They are doubled for those centres that find
    fewer. ``admitted`` returns those pairs that count, of the centres at some positions.

    >>> points = np.array([[0.0, 0.0], [0.5, 0.0], [1.0, 1.0]])
    >>> centres, ks = np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([2, 1])
    >>> kth_squares(centres, ks, points, Box.around(points, 4)).tolist()
    [0.25, 0.25]
    """
    squares = np.full(len(centres), math.inf)
    if len(centres) <= FEW:
        for at, k in enumerate(ks.tolist()):
            own = squared_distances(centres[at][None, :], points)
            pairs = Pairs(np.zeros(len(own), np.int64), np.arange(len(own)), own)
            counted = admitted(np.array([at]), pairs).squares
            squares[at] = np.partition(counted, k - 1)[k - 1]
        return squares
    even = (box.volume * ks / max(1, len(points))) ** (2 / points.shape[1])
    known = even if guess is None else guess
    within = np.where(np.isfinite(known), np.maximum(known, even / 1_000), even)
    rest = np.arange(len(centres))
    for tries in range(_ROUNDS + 1):
        if tries == _ROUNDS:
            within[rest] = math.inf
        grid = QueryGrid(centres[rest], within[rest], box)
        pairs = admitted(rest, grid.pairs(points, within[rest]))
        counts = np.bincount(pairs.queries, minlength=len(rest))
        enough = counts >= ks[rest]
        in_order = pairs.squares[np.lexsort((pairs.squares, pairs.queries))]
        squares[rest[enough]] = in_order[(np.cumsum(counts) - counts + ks[rest] - 1)[enough]]
        rest = rest[~enough]
        if not len(rest):
            break
        within[rest] *= 4
    return squares
