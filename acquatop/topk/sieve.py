"""Find the few merits that pass a bar among the many that do not, at the speed of the comparison."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray

_ALL_BELOW = np.uint64(0x0101010101010101)


class Sieve:
    """Compares with a bar into a buffer of its own: a fresh one each time would cost more than the comparison."""

    def __init__(self) -> None:
        self._below = np.empty(0, dtype=bool)

    def passing(self, merits: FloatArray, bar: float) -> IntArray:
        """Return the positions of all merits but those below a bar: NaN is not below it.

        >>> Sieve().passing(np.array([1.0, np.nan, 3.0, 2.0]), 2.0).tolist()
        [1, 2, 3]
        """
        size = -(-len(merits) // 8) * 8
        if len(self._below) < size:
            self._below = np.empty(size, dtype=bool)
        below = self._below[:size]
        below[len(merits) :] = True
        np.less(merits, bar, out=below[: len(merits)])
        # Where few pass, looking for them eight at a time is most of the speed.
        words = (below.view(np.uint64) != _ALL_BELOW).nonzero()[0]
        if len(words) > size // 32:
            return np.flatnonzero(~below[: len(merits)])
        row, column = (~below.reshape(-1, 8)[words]).nonzero()
        return np.asarray(words[row] * 8 + column)
