"""How fast things change in general: a Gamma distribution of rates, fitted to what is known of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replica.freshness.arrays import FloatArray

_SHAPES = (0.02, 200.0)
_MEANS = (1e-14, 1e6)
_ROUNDS = 25
_ENOUGH = 1e-3
"""By what share a round changes little enough for the next fit to go on from there."""
_WEIGHT_OF_THE_FIRST_SHAPE = 2.0
_SHIFT = 6


@dataclass(frozen=True)
class GammaPrior:
    """Changes per second of a row of which nothing is known: shape / rate on average, the wider the smaller the shape.

    The default says that nothing is known of anything: about one change an hour, give or take an hour.
    """

    shape: float = 1.0
    rate: float = 3600.0

    @property
    def mean(self) -> float:
        """Changes per second, on average over all rows."""
        return self.shape / self.rate

    def fitted(self, changes: FloatArray, exposure: FloatArray, typical: float) -> GammaPrior:
        """Return what makes the evidence of some rows likeliest, starting from this one.

        A row whose rate is λ has evidence of likelihood λ^changes · e^(−λ·exposure). Empirical Bayes by
        expectation and maximisation: O(rows) per round, a limited number of rounds. Two things keep the
        estimate within reason while little is known: one imagined row that changed half a time in half the
        ``typical`` exposure of one look, and two that have the shape 1.

        >>> few = GammaPrior().fitted(np.array([1.0, 3.0, 0.0, 2.0]), np.full(4, 100.0), typical=10.0)
        >>> 0.012 < few.mean < 0.025
        True
        """
        changes = np.append(changes, 0.5)
        exposure = np.append(exposure, 0.5 * typical)
        shape, rate = self.shape, self.rate
        for _ in range(_ROUNDS):
            shapes, rates = shape + changes, rate + exposure
            mean = float(np.clip((shapes / rates).mean(), *_MEANS))
            log_mean = float((digamma(shapes) - np.log(rates)).mean())
            count = len(changes)
            # The gap between log of mean and mean of log: Euler's constant for the shape 1.
            gap = count * (np.log(mean) - log_mean) + _WEIGHT_OF_THE_FIRST_SHAPE * np.euler_gamma
            before = shape, rate
            shape = _shape_of(gap / (count + _WEIGHT_OF_THE_FIRST_SHAPE))
            rate = shape / mean
            if abs(shape - before[0]) < _ENOUGH * shape and abs(rate - before[1]) < _ENOUGH * rate:
                break
        return GammaPrior(shape, rate)


def _shape_of(gap: float) -> float:
    """Return the Gamma shape for which the log of the mean is above the mean of the logs by a gap; within 1.5 %."""
    gap = max(gap, 1e-6)
    return float(np.clip((3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap), *_SHAPES))


def digamma(values: FloatArray) -> FloatArray:
    """Return the logarithmic derivative of the Gamma function, for positive values, to about eight digits.

    >>> digamma(np.array([1.0, 0.02])).round(6).tolist()
    [-0.577216, -50.544789]
    """
    shifted = values + _SHIFT
    squared = 1 / (shifted * shifted)
    result = np.log(shifted) - 0.5 / shifted - squared * (1 / 12 - squared * (1 / 120 - squared / 252))
    for step in range(_SHIFT):
        result -= 1 / (values + step)
    return np.asarray(result)
