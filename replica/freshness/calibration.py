"""Calibrate predicted change probabilities by how often predicted changes were observed."""

from __future__ import annotations

import numpy as np

from replica.freshness.arrays import BoolArray, FloatArray, IntArray

_GROUPS = 12
_CAUTION = 10.0
_MEMORY = 500.0


class Calibration:
    """Predicted chances and their outcomes, in twelve groups by chance; fades beyond 500 per group.

    The correction is linear between the groups' means, and never reverses the order of two chances.
    A group carries weight only if it has more than some ten changes (above one half: non-changes).

    >>> calibration = Calibration()
    >>> calibration.observe(np.full(4000, 0.3), np.arange(4000) < 400)
    >>> calibration.corrected(np.array([0.0, 0.3, 1.0])).round(2).tolist()
    [0.0, 0.11, 1.0]
    """

    def __init__(self) -> None:
        self.groups: FloatArray = np.zeros((3, _GROUPS))
        """Per group: number of predictions, sum of their chances, number of changes observed."""
        self._line: tuple[FloatArray, FloatArray] | None = None

    def observe(self, predicted: FloatArray, changed: BoolArray) -> None:
        """Take in predicted chances and their outcomes. O(n)."""
        at = _group_of(predicted)
        for sums, weights in zip(self.groups, (None, predicted, changed), strict=True):
            sums += np.bincount(at, weights, minlength=_GROUPS)
        self.groups *= np.minimum(1.0, _MEMORY / np.maximum(self.groups[0], 1.0))
        self._line = None

    def resume(self, groups: FloatArray) -> None:
        """Restore the groups."""
        self.groups = groups
        self._line = None

    def corrected(self, predicted: FloatArray) -> FloatArray:
        """Return the calibrated chances. O(n)."""
        if self._line is None:
            self._line = self._drawn()
        return np.asarray(np.interp(predicted, *self._line), np.float64)

    def _drawn(self) -> tuple[FloatArray, FloatArray]:
        """Return the line of the correction: some chances, and what each becomes."""
        counts, chances, changed = self.groups
        seen = counts > 0
        means = chances[seen] / counts[seen]
        yes = means * (changed[seen] + _CAUTION) / (chances[seen] + _CAUTION)
        no = (
            (1 - means)
            * ((counts - changed)[seen] + _CAUTION)
            / ((counts - chances)[seen] + _CAUTION)
        )
        values = np.maximum.accumulate(np.clip(np.where(means < 0.5, yes, 1 - no), 0.0, 1.0))
        return (
            np.concatenate([[0.0], means, [1.0]]),
            np.concatenate([[0.0], values, [1.0]]),
        )


def _group_of(chances: FloatArray) -> IntArray:
    return np.minimum((chances * _GROUPS).astype(np.int64), _GROUPS - 1)
