"""Evidence of each row's rate of change, from repeated looks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from replica.freshness.arrays import BoolArray, FloatArray, IntArray, grown
from replica.freshness.calibration import Calibration
from replica.freshness.gamma_prior import GammaPrior
from replica.freshness.value_classes import CLASSES, ValueClasses

MEMORY = 100.0
"""Number of changes after which evidence has faded to 1/e."""

_TINY, _MOST = 1e-9, 1e6
_SAMPLE = 4096
_PATIENCE = 20_000
"""Most looks between two fits of the prior."""


class RateEvidence:
    """Changes and exposure by row, and the prior that all rows share; nine bytes per row.

    Given that evidence, a row's rate is Gamma(prior.shape + changes, prior.rate + exposure). A look
    that finds no change after ``age`` seconds adds the exposure ``age``, which is exact; a row's
    seconds are longer or shorter by the tempo of its value's class. A look
    that finds a change shows that there was at least one: the update gives the Gamma distribution
    the mean and the variance of the true posterior. So a change found after a long time says
    little, one found soon much. Observing n looks takes O(n).

    The prior is fitted to at most 4096 rows whenever a tenth more looks have been taken (or 20
    000): O(1) per look.
    """

    def __init__(self) -> None:
        self.changes: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self.exposure: npt.NDArray[np.float32] = np.empty(0, np.float32)
        self.prior = GammaPrior()
        self.calibration = Calibration(CLASSES)
        self.classes = ValueClasses()
        self._looks = 0.0
        self._seconds = 0.0
        self._fitted_at = 0.0

    def grow(self, capacity: int) -> None:
        """Make room for unknown rows."""
        self.changes = grown(self.changes, capacity, 0)
        self.exposure = grown(self.exposure, capacity, 0)
        self.classes.grow(capacity)

    def clear(self, rows: IntArray) -> None:
        """Forget some rows; statistics over all rows remain."""
        self.changes[rows] = 0
        self.exposure[rows] = 0
        self.classes.clear(rows)

    def posterior(self, rows: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return shape and rate of each row's Gamma distribution; the prior's for row -1."""
        if not len(self.changes):
            return np.full(len(rows), self.prior.shape), np.full(len(rows), self.prior.rate)
        known = rows >= 0
        return (
            self.prior.shape + np.where(known, self.changes[rows], 0.0).astype(np.float64),
            self.prior.rate + np.where(known, self.exposure[rows], 0.0).astype(np.float64),
        )

    def mean(self, rows: IntArray) -> FloatArray:
        """Return each row's expected changes per second, while its value is what it is."""
        shapes, rates = self.posterior(rows)
        return shapes / rates * self.classes.tempo(rows)

    def chance(self, rows: IntArray, ages: FloatArray) -> FloatArray:
        """Return the chance that rows have changed, if looked at again after ``ages`` seconds.

        The mean of ``1 - e^(-rate · age)`` over the posterior of the rate, calibrated by observed
        outcomes.
        """
        own = ages * self.classes.tempo(rows)
        return self.calibration.corrected(self._predicted(rows, own), self.classes.of(rows))

    def changes_behind(self, rows: IntArray, ages: FloatArray) -> FloatArray:
        """Return the expected changes behind one found after ``ages`` seconds: at least 1."""
        expected = np.minimum(self.mean(rows) * ages, _MOST)
        return np.where(expected > _TINY, expected / -np.expm1(-np.maximum(expected, _TINY)), 1.0)

    def observe(
        self, rows: IntArray, ages: FloatArray, changed: BoolArray, *, pushed: bool
    ) -> None:
        """Take in the result of looking at some rows, each at most once, after more than 0 seconds.

        ``pushed`` means that changes were announced when they happened, not found by looking.
        """
        if not len(rows):
            return
        if not self._looks:
            # Only the interval of looks is known yet: guess a change at every second look.
            self.prior = GammaPrior(rate=float(ages.mean()))
        ages = ages * self.classes.tempo(rows)
        self._looks += len(rows)
        self._seconds += float(ages.sum())
        if not pushed:
            self._judge(rows, ages, changed)
        self._fade(rows, ages)
        shapes, rates = self.posterior(rows)
        more_changes, more_exposure = np.zeros(len(rows)), ages.copy()
        if pushed:
            more_changes[changed] = 1.0
        else:
            found = _with_a_change(shapes[changed], rates[changed], ages[changed])
            more_changes[changed], more_exposure[changed] = found
        self.changes[rows] += more_changes.astype(np.float32)
        self.exposure[rows] += more_exposure.astype(np.float32)
        if self._looks >= min(1.1 * self._fitted_at, self._fitted_at + _PATIENCE):
            self._fit()

    def state(self, used: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return all state, of the first ``used`` rows or of all."""
        pooled = [self.prior.shape, self.prior.rate, self._looks, self._seconds, self._fitted_at]
        return {
            "changes": self.changes[:used],
            "exposure": self.exposure[:used],
            "pooled": np.array(pooled),
            "calibration": self.calibration.groups.ravel(),
            **self.classes.state(used),
        }

    def resume(self, state: Mapping[str, npt.NDArray[Any]]) -> None:
        """Continue from a state."""
        self.changes = np.array(state["changes"], np.float32)
        self.exposure = np.array(state["exposure"], np.float32)
        shape, rate, self._looks, self._seconds, self._fitted_at = np.asarray(
            state["pooled"], np.float64
        ).tolist()
        self.prior = GammaPrior(shape, rate)
        self.calibration.resume(np.array(state["calibration"], np.float64))
        self.classes.resume(
            {name: state[name] for name in ("classes", "tempos") if name in state},
            len(self.changes),
        )

    def _predicted(self, rows: IntArray, ages: FloatArray) -> FloatArray:
        shapes, rates = self.posterior(rows)
        return np.asarray(-np.expm1(-shapes * np.log1p(ages / rates)))

    def _judge(self, rows: IntArray, ages: FloatArray, changed: BoolArray) -> None:
        """Compare what is said of looks, which nothing has been learned from yet, with outcomes."""
        predicted, classes = self._predicted(rows, ages), self.classes.of(rows)
        self.calibration.observe(predicted, changed, classes)
        shapes, rates = self.posterior(rows)
        steepness = shapes * ages / (rates + ages) * (1 - predicted)
        self.classes.learn(classes, predicted, steepness, changed)

    def _fade(self, rows: IntArray, ages: FloatArray) -> None:
        """Let old evidence fade by the number of changes expected, at the row's or the mean rate.

        A row that starts or ceases to change is noticed after about ``MEMORY`` changes.
        """
        shapes, rates = self.posterior(rows)
        kept = np.exp(-np.maximum(shapes / rates, self.prior.mean) * ages / MEMORY)
        self.changes[rows] *= kept.astype(np.float32)
        self.exposure[rows] *= kept.astype(np.float32)

    def _fit(self) -> None:
        known = np.flatnonzero((self.exposure > 0) | (self.changes > 0))
        sample = known[:: 1 + len(known) // _SAMPLE]
        self.prior = self.prior.fitted(
            self.changes[sample].astype(np.float64),
            self.exposure[sample].astype(np.float64),
            typical=self._seconds / self._looks,
        )
        self._fitted_at = self._looks


def _with_a_change(
    shapes: FloatArray, rates: FloatArray, ages: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Return the increments of shape and rate for a change within each age.

    The moments of a Gamma distribution times 1 − e^(−λ·age) are known in closed form.
    """
    # 1 - (rate / (rate + age)) ** (shape + m) for m = 0, 1, 2, without losing digits at short ages.
    stretch = np.log1p(ages / rates)
    none, one, two = (-np.expm1(-(shapes + m) * stretch) for m in range(3))
    mean = shapes / rates * one / none
    spread = (shapes + 1) / shapes * two * none / (one * one) - 1
    shape = 1 / spread
    return np.clip(shape - shapes, 0.0, 1.0), np.clip(shape / mean - rates, 0.0, ages)
