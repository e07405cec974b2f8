"""Model of the present values of rows that were fetched some time ago."""

from __future__ import annotations

import numpy as np

from replica.freshness.arrays import NEVER, FloatArray, IntArray
from replica.freshness.drawn_anew import chance_drawn_anew
from replica.freshness.history import History
from replica.freshness.value_changes import ValueChanges

_ENOUGH = 32
"""Number of changes from which on observed changes alone predict values and their spread."""

_LEAST_SQUARES = 1e-6
"""Lower bound of a chi-squared draw: steps are at most some thousand times wider than observed."""


class ChangeModel:
    """Predictions from a history: the chance that a row has changed, and its possible values then.

    Rows are independent. Each changes as a Poisson process with a rate of its own.
    """

    def __init__(self, history: History) -> None:
        self._history = history

    def rates(self, rows: IntArray) -> FloatArray:
        """Return changes per second: the posterior mean, or the prior's for unknown rows. O(n)."""
        return self._history.rates.mean(rows)

    def intervals(self, rows: IntArray) -> FloatArray:
        """Return the expected seconds between changes. O(n)."""
        return 1 / self.rates(rows)

    def chance(self, rows: IntArray, now: float) -> FloatArray:
        """Return the chance that a row's value has changed by now; 1 for rows never fetched. O(n).

        The mean of ``1 - e^(-rate · age)`` over the posterior of the rate, calibrated by observed
        outcomes.
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
        """Return ``count`` samples of each row's value after a change: (count, rows). O(samples).

        Steps are drawn from those observed, fitted to the row. They are wider the longer ago the
        row was fetched, if the observed steps were. If there is no value (NaN), values are drawn
        from the known values of all rows; if none is known either, the value stays NaN. While few
        changes have been observed, some samples draw the values of all rows in this way, and the
        others scale all steps to be wider or narrower than observed. Values are whole, never
        negative, or never fall (or rise) if that held for all observations.

        ``doubt`` is the least share of samples that draw from the known values, however many
        changes have been observed: steps learned so far may not hold for the next change.
        """
        value_changes = self._history.value_changes[variable]
        shape = (count, len(rows))
        drawn = np.broadcast_to(values, shape).copy()
        if value_changes.fit.residuals:
            drawn = _moved(value_changes, rows, values, self._changes(rows, now), count, random)
        known = value_changes.known.figures[:, 0]
        if not len(known):
            return drawn
        anew = np.isnan(values) | (
            random.random((count, 1)) < max(doubt, _share_anew(value_changes))
        )
        drawn[anew] = known[random.integers(0, len(known), int(anew.sum()))]
        return drawn

    def _changes(self, rows: IntArray, now: float) -> FloatArray:
        """Return the expected number of changes behind a present change; 1 if never fetched."""
        ages = self._ages(rows, now)
        return self._history.rates.changes_behind(rows, np.where(np.isfinite(ages), ages, 0.0))

    def _ages(self, rows: IntArray, now: float) -> FloatArray:
        fetched_at = self._history.fetched_at
        known = (rows >= 0) & (len(fetched_at) > 0)
        times = np.full(len(rows), NEVER)
        times[known] = fetched_at[rows[known]]
        return np.asarray(np.maximum(now - times, 0.0))


def _share_anew(value_changes: ValueChanges) -> float:
    """Return the share of samples that draw from known values: 0 after enough changes."""
    seen = len(value_changes.fit.residuals)
    if not 0 < seen < _ENOUGH:
        return float(seen == 0)
    before, _, steps, _, _ = value_changes.changes.figures.T
    moved = steps != 0
    return (1 - seen / _ENOUGH) * chance_drawn_anew(
        before[moved], steps[moved], value_changes.known.figures[:, 0]
    )


def _moved(
    value_changes: ValueChanges,
    rows: IntArray,
    values: FloatArray,
    changes: FloatArray,
    count: int,
    random: np.random.Generator,
) -> FloatArray:
    fit, shape = value_changes.fit, (count, len(rows))
    offsets, spreads = value_changes.of(rows)
    residuals = np.array(fit.residuals)[random.integers(0, len(fit.residuals), shape)]
    if len(fit.residuals) < _ENOUGH:
        # The scale of so few is uncertain, as in Student's t. All rows share one scale.
        squares = random.chisquare(len(fit.residuals), (count, 1))
        residuals *= np.sqrt(len(fit.residuals) / np.maximum(squares, _LEAST_SQUARES))
    drawn = values + fit.middle(values, offsets) + fit.size(values, changes) * spreads * residuals
    known = value_changes.known.figures[:, 0]
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
