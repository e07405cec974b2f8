"""Keys whose changed values may lift dropped rows, told apart by bounds on their merits."""

from __future__ import annotations

import itertools
import math

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, Scoring
from acquatop.topk.dropped_bounds import finite_or_any

_CORNERS = 3
"""Largest number of parts all corners of whose ranges are scored."""


class LiftedKeys:
    """Keys in the order of the best merit that a row of theirs may have now.

    ``lows`` and ``highs`` are the ranges of the rows' parts. The order is by the merits at the
    corners of these ranges: a guess, which is right if scores rise or fall with each part. The
    bound on the others is the score's own, so a wrong guess costs time, never a row.
    """

    def __init__(
        self,
        scoring: Scoring,
        keys: AnyArray,
        lows: tuple[float, ...],
        highs: tuple[float, ...],
    ) -> None:
        guesses = _best_at_corners(scoring, keys, lows, highs)
        order = guesses.argsort(kind="stable")
        self._scoring = scoring
        self._keys = keys[order]
        self._guesses = guesses[order]
        self._ranges = lows, highs
        self._bounds: dict[int, float] = {0: -math.inf}

    def above(self, merit: float, limit: float) -> tuple[AnyArray, float]:
        """Return the keys whose rows may reach a merit, and a bound on the rows of all others.

        All keys are returned if the bound on the others would reach ``limit``.
        """
        others = int(self._guesses.searchsorted(merit))
        bound = self._bound(others)
        return (self._keys[others:], bound) if bound < limit else (self._keys, -math.inf)

    def _bound(self, count: int) -> float:
        if count not in self._bounds:
            lows, highs = self._ranges
            self._bounds[count] = finite_or_any(
                self._scoring.reach(lows, highs, self._keys[:count])
            )
        return self._bounds[count]


def _best_at_corners(
    scoring: Scoring, keys: AnyArray, lows: tuple[float, ...], highs: tuple[float, ...]
) -> FloatArray:
    """Return each key's best merit at the corners of the ranges; infinity if it has none there."""
    ranges = zip(lows, highs, strict=True)
    corners = itertools.product(*ranges) if len(lows) <= _CORNERS else iter((lows, highs))
    best = np.full(len(keys), -math.inf)
    for corner in set(corners):
        merits = scoring.merits(keys, tuple(np.full(len(keys), part) for part in corner))
        best = np.maximum(best, np.where(np.isnan(merits), math.inf, merits))
    return best
