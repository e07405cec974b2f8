"""Gamma prior of change rates over all rows, fitted to the evidence of each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replica.freshness.arrays import FloatArray

_SHAPES = (0.02, 200.0)
_MEANS = (1e-14, 1e6)
_ROUNDS = 25
_ENOUGH = 1e-3
"""Relative change of a round below which the fit stops; the next fit continues from there."""
_WEIGHT_OF_THE_FIRST_SHAPE = 2.0
_SHIFT = 6


@dataclass(frozen=True)
class GammaPrior:
    """Prior of the changes per second of an unknown row: mean shape / rate, wider for small shapes.

    The default means that nothing is known: about one change an hour, give or take an hour.
    """

    shape: float = 1.0
    rate: float = 3600.0

    @property
    def mean(self) -> float:
        """Changes per second, on average over all rows."""
        return self.shape / self.rate

    def fitted(self, changes: FloatArray, exposure: FloatArray, typical: float) -> GammaPrior:
        """Return the prior of highest likelihood for the rows' evidence, starting from this one.

        A row with rate λ has evidence of likelihood λ^changes · e^(−λ·exposure). Empirical Bayes by
        expectation maximisation: O(rows) per round, a limited number of rounds. Two additions
        regularise the estimate while little is known: one imagined row that changed half a time in
        half the ``typical`` exposure of one look, and two imagined rows with shape 1.

        >>> few = GammaPrior().fitted(
        ...     np.array([1.0, 3.0, 0.0, 2.0]), np.full(4, 100.0), typical=10.0
        ... )
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
            # The gap between the log of the mean and the mean of the logs: Euler's constant for
            # shape 1.
            gap = count * (np.log(mean) - log_mean) + _WEIGHT_OF_THE_FIRST_SHAPE * np.euler_gamma
            before = shape, rate
            shape = _shape_of(gap / (count + _WEIGHT_OF_THE_FIRST_SHAPE))
            rate = shape / mean
            if abs(shape - before[0]) < _ENOUGH * shape and abs(rate - before[1]) < _ENOUGH * rate:
                break
        return GammaPrior(shape, rate)


def _shape_of(gap: float) -> float:
    """Return the Gamma shape for a gap: log of the mean less mean of the logs; within 1.5 %."""
    gap = max(gap, 1e-6)
    return float(np.clip((3 - gap + np.sqrt((gap - 3) ** 2 + 24 * gap)) / (12 * gap), *_SHAPES))


def digamma(values: FloatArray) -> FloatArray:
    """Return the derivative of the log Gamma function at positive values, to about eight digits.

    >>> digamma(np.array([1.0, 0.02])).round(6).tolist()
    [-0.577216, -50.544789]
    """
    shifted = values + _SHIFT
    squared = 1 / (shifted * shifted)
    result = (
        np.log(shifted) - 0.5 / shifted - squared * (1 / 12 - squared * (1 / 120 - squared / 252))
    )
    for step in range(_SHIFT):
        result -= 1 / (values + step)
    return np.asarray(result)
