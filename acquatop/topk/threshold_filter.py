"""Filter for the few merits that pass a bar, at the speed of the comparison."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray


class ThresholdFilter:
    """Comparison with a bar, into a reused buffer.

    A new buffer each time would cost more than the comparison.
    """

    def __init__(self) -> None:
        self._passing = np.empty(0, dtype=bool)

    def passing(self, merits: FloatArray, bar: float) -> IntArray:
        """Return the positions of all merits that are not below a bar. NaN is not below it.

        >>> ThresholdFilter().passing(np.array([1.0, np.nan, 3.0, 2.0]), 2.0).tolist()
        [1, 2, 3]
        """
        if len(self._passing) < len(merits):
            self._passing = np.empty(len(merits), dtype=bool)
        passing = self._passing[: len(merits)]
        np.less(merits, bar, out=passing)
        np.logical_not(passing, out=passing)
        return passing.nonzero()[0]
