"""Calibrate predicted change probabilities by how often predicted changes were observed."""

from __future__ import annotations

import numpy as np

from replica.freshness.arrays import BoolArray, FloatArray, IntArray

_GROUPS = 12
_CAUTION = 10.0
_MEMORY = 500.0


class Calibration:
    """Predicted chances and their outcomes, in twelve groups by chance; fades beyond 500 per group.

    Each of some classes of predictions has groups of its own. The correction is linear between the
    groups' means, and never reverses the order of two chances of a class. A group carries weight
    only if it has more than some ten changes (above one half: non-changes).

    >>> calibration, one, other = Calibration(classes=2), np.zeros(4000, int), np.ones(3, int)
    >>> calibration.observe(np.full(4000, 0.3), np.arange(4000) < 400, one)
    >>> calibration.corrected(np.array([0.0, 0.3, 1.0]), one[:3]).round(2).tolist()
    [0.0, 0.11, 1.0]
    >>> calibration.corrected(np.array([0.0, 0.3, 1.0]), other).round(2).tolist()
    [0.0, 0.3, 1.0]
    """

    def __init__(self, classes: int) -> None:
        self.groups: FloatArray = np.zeros((3, classes, _GROUPS))
        """By class and group: number of predictions, sum of chances, number of changes observed."""
        self._lines: dict[int, tuple[FloatArray, FloatArray]] = {}

    def observe(self, predicted: FloatArray, changed: BoolArray, classes: IntArray) -> None:
        """Take in predicted chances and their outcomes. O(n)."""
        at, shape = classes * _GROUPS + _group_of(predicted), self.groups.shape[1:]
        size = shape[0] * shape[1]
        for sums, weights in zip(self.groups, (None, predicted, changed), strict=True):
            sums += np.bincount(at, weights, minlength=size).reshape(shape)
        self.groups *= np.minimum(1.0, _MEMORY / np.maximum(self.groups[0], 1.0))
        self._lines.clear()

    def resume(self, figures: FloatArray) -> None:
        """Restore the groups. Those of one class alone, as older ones are, hold for all."""
        shape = self.groups.shape
        self.groups = np.array(np.broadcast_to(figures.reshape(3, -1, _GROUPS), shape))
        self._lines.clear()

    def corrected(self, predicted: FloatArray, classes: IntArray) -> FloatArray:
        """Return the calibrated chances. O(n)."""
        found = np.array(predicted, np.float64)
        for each in np.unique(classes).tolist():
            if each not in self._lines:
                self._lines[each] = self._drawn(self.groups[:, each])
            mine = classes == each
            found[mine] = np.interp(predicted[mine], *self._lines[each])
        return found

    @staticmethod
    def _drawn(groups: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the line of a class's correction: some chances, and what each becomes."""
        counts, chances, changed = groups
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
