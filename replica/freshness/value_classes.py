"""Classes of values, zero or small or large, and how fast each changes compared with its row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from replica.freshness.arrays import BoolArray, FloatArray, IntArray, grown

_UNKNOWN, _ZERO, _SMALL, _LARGE = range(4)
CLASSES = 4
"""Number of classes; the first is that of rows without a number."""

_CAUTION, _MEMORY = 10.0, 500.0
"""Information in favour of equal tempos, and most information after which a look still counts."""

_FARTHEST = 4.0
"""Bound of a tempo's logarithm."""

_SURE = 1e-9
"""Distance from certainty within which a prediction says nothing of tempos."""


class ValueClasses:
    """Class of each row's present value, in one byte, and the tempo of each class.

    A row's time runs ``tempo`` times as fast while its value is of a class: a zero may stay for
    hours in a row whose other values change every minute. The logarithms of the tempos follow the
    gradient of the log score of each look's prediction, in steps of one over the information so
    far. Small values are below the median of the known ones that are not zero. O(rows) per call.

    >>> classes = ValueClasses()
    >>> classes.grow(4)
    >>> classes.see(np.arange(4), np.array([np.nan, 0.0, -1.0, 5.0]), np.array([0.0, 1.0, 5.0]))
    >>> classes.of(np.array([0, 1, 2, 3, -1])).tolist()
    [0, 1, 2, 3, 0]
    >>> for _ in range(100):  # of ten, two change, where each was expected to with the chance 0.5
    ...     classes.learn(np.ones(10, int), np.full(10, 0.5), np.full(10, 0.3), np.arange(10) < 2)
    >>> bool(classes.tempo(np.array([1]))[0] < 0.1 < classes.tempo(np.array([2]))[0])
    True
    """

    def __init__(self) -> None:
        self.of_rows: npt.NDArray[np.uint8] = np.empty(0, np.uint8)
        self._logs: FloatArray = np.zeros(CLASSES)
        self._information: FloatArray = np.full(CLASSES, _CAUTION)

    def grow(self, capacity: int) -> None:
        """Make room for rows of no class."""
        self.of_rows = grown(self.of_rows, capacity, _UNKNOWN)

    def clear(self, rows: IntArray) -> None:
        """Forget some rows' classes."""
        self.of_rows[rows] = _UNKNOWN

    def see(self, rows: IntArray, numbers: FloatArray, known: FloatArray) -> None:
        """Note the present numbers of rows, among others that are known."""
        sizes, sizes_known = np.abs(numbers), np.abs(known)
        moved = sizes_known[sizes_known > 0]
        border = float(np.median(moved)) if len(moved) else 0.0
        cases = [np.isnan(numbers), sizes == 0, sizes < border]
        self.of_rows[rows] = np.select(cases, [_UNKNOWN, _ZERO, _SMALL], _LARGE)

    def of(self, rows: IntArray) -> IntArray:
        """Return the class of each row; that of the unknown for row -1."""
        if not len(self.of_rows):
            return np.full(len(rows), _UNKNOWN)
        return np.where(rows >= 0, self.of_rows[rows], _UNKNOWN).astype(np.int64)

    def tempo(self, rows: IntArray) -> FloatArray:
        """Return how fast each row's time runs: 1 if its value is of no class."""
        return np.asarray(np.exp(self._logs)[self.of(rows)])

    def learn(
        self, classes: IntArray, predicted: FloatArray, steepness: FloatArray, changed: BoolArray
    ) -> None:
        """Learn from chances predicted for looks at values of some classes, and their outcomes.

        ``steepness`` is how a chance grows with the logarithm of the tempo.
        """
        is_open = (predicted > _SURE) & (predicted < 1 - _SURE)
        at, chance, steep = classes[is_open], predicted[is_open], steepness[is_open]
        variance = chance * (1 - chance)
        scores = (changed[is_open] - chance) / variance * steep
        self._information += np.bincount(at, steep * steep / variance, minlength=CLASSES)
        steps = np.bincount(at, scores, minlength=CLASSES) / self._information
        steps[_UNKNOWN] = 0.0
        self._logs = np.clip(self._logs + steps, -_FARTHEST, _FARTHEST)
        self._information = np.minimum(self._information, _MEMORY)

    def state(self, used: int | None = None) -> dict[str, npt.NDArray[Any]]:
        """Return all state, of the first ``used`` rows or of all."""
        return {
            "classes": self.of_rows[:used],
            "tempos": np.concatenate([self._logs, self._information]),
        }

    def resume(self, state: Mapping[str, npt.NDArray[Any]], rows: int) -> None:
        """Continue from a state of so many rows; older ones say nothing of classes."""
        none = ValueClasses()
        none.grow(rows)
        state = {**none.state(), **state}
        self.of_rows = np.array(state["classes"], np.uint8)
        self._logs, self._information = np.array(state["tempos"], np.float64).reshape(2, CLASSES)
        if len(self.of_rows) and self.of_rows.max() >= CLASSES:
            raise ValueError("not a history: there is no such class of values")
