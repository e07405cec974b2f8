"""What can be expected of values that were fetched some time ago."""

from __future__ import annotations

import numpy as np

from replica.freshness.arrays import NEVER, FloatArray, IntArray
from replica.freshness.history import History
from replica.freshness.jumps import Jumps
from replica.freshness.nearness import chance_drawn_anew

_ENOUGH = 32
"""From how many changes on nothing but changes says where values go, and how widely they are spread."""

_LEAST_SQUARES = 1e-6
"""So steps are never drawn more than some thousand times as wide as those seen."""


class ChangeModel:
    """Reads a history: how likely a row has changed, and what its values may be if it has.

    Rows are independent, and change at any time alike (a Poisson process), each at a rate of its own.
    """

    def __init__(self, history: History) -> None:
        self._history = history

    def rates(self, rows: IntArray) -> FloatArray:
        """Return changes per second: the posterior mean, that of all rows where nothing is known of one. O(n)."""
        shapes, rates = self._history.rates.posterior(rows)
        return shapes / rates

    def intervals(self, rows: IntArray) -> FloatArray:
        """Return the seconds between changes. O(n)."""
        return 1 / self.rates(rows)

    def chance(self, rows: IntArray, now: float) -> FloatArray:
        """Return how likely it is that a row's value is another by now; 1 for rows that were never fetched. O(n).

        The mean of ``1 - e^(-rate · age)`` over all that the rate may be, corrected by how often that came about.
        """
        return self._history.rates.chance(rows, self._ages(rows, now))

    def draw(
        self,
        variable: str,
        rows: IntArray,
        values: FloatArray,
        count: int,
        random: np.random.Generator,
        *,
        now: float,
        doubt: float = 0.0,
    ) -> FloatArray:
        """Return ``count`` samples of each row's value, given that the row has changed: (count, rows). O(samples).

        Steps are drawn from those seen, fitted to the row: the longer ago it was fetched the wider, if steps have been
        so. Where there is no value (NaN), values are drawn from those known of any row; where none is known either, the
        value stays. While few changes have been seen, some samples draw all rows' values so, in others all steps are
        wider or narrower than those seen. Values are whole, never negative, or never fall (or rise) where that held for
        all seen. ``doubt`` is the least share of samples that draw from the values known, however many have been seen:
        what has been learned of steps may not hold for the next.
        """
        jumps = self._history.jumps[variable]
        shape = (count, len(rows))
        drawn = np.broadcast_to(values, shape).copy()
        if jumps.fit.residuals:
            drawn = _moved(jumps, rows, values, self._changes(rows, now), count, random)
        known = jumps.known.figures[:, 0]
        if not len(known):
            return drawn
        anew = np.isnan(values) | (random.random((count, 1)) < max(doubt, _share_anew(jumps)))
        drawn[anew] = known[random.integers(0, len(known), int(anew.sum()))]
        return drawn

    def _changes(self, rows: IntArray, now: float) -> FloatArray:
        """Return how many changes are likely to lie behind what rows have now, if any; 1 for what was never fetched."""
        ages = self._ages(rows, now)
        return self._history.rates.changes_behind(rows, np.where(np.isfinite(ages), ages, 0.0))

    def _ages(self, rows: IntArray, now: float) -> FloatArray:
        fetched_at = self._history.fetched_at
        known = (rows >= 0) & (len(fetched_at) > 0)
        times = np.full(len(rows), NEVER)
        times[known] = fetched_at[rows[known]]
        return np.asarray(np.maximum(now - times, 0.0))


def _share_anew(jumps: Jumps) -> float:
    """Return the share of samples in which changes draw from the values known: none once enough have been seen."""
    seen = len(jumps.fit.residuals)
    if not 0 < seen < _ENOUGH:
        return float(seen == 0)
    before, _, steps, _, _ = jumps.changes.figures.T
    moved = steps != 0
    return (1 - seen / _ENOUGH) * chance_drawn_anew(before[moved], steps[moved], jumps.known.figures[:, 0])


def _moved(
    jumps: Jumps, rows: IntArray, values: FloatArray, changes: FloatArray, count: int, random: np.random.Generator
) -> FloatArray:
    fit, shape = jumps.fit, (count, len(rows))
    offsets, spreads = jumps.of(rows)
    residuals = np.array(fit.residuals)[random.integers(0, len(fit.residuals), shape)]
    if len(fit.residuals) < _ENOUGH:
        # How wide so few are is as unsure as in Student's t. It is the same width for all rows.
        squares = random.chisquare(len(fit.residuals), (count, 1))
        residuals *= np.sqrt(len(fit.residuals) / np.maximum(squares, _LEAST_SQUARES))
    drawn = values + fit.middle(values, offsets) + fit.size(values, changes) * spreads * residuals
    known = jumps.known.figures[:, 0]
    whole = bool((known == np.rint(known)).all())
    if whole:
        drawn = np.rint(drawn)
    least = 1.0 if whole else 0.0
    if fit.rises:
        drawn = np.maximum(drawn, values + least)
    elif fit.falls:
        drawn = np.minimum(drawn, values - least)
    if len(known) and known.min() >= 0:
        drawn = np.maximum(drawn, 0.0)
    if fit.still:
        drawn = np.where(random.random(shape) < fit.still, values, drawn)
    return np.asarray(drawn)
