"""Places of rows' values, of which a row may have any number."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import IntArray
from replica.store.runs import Runs, runs_at

_LEAST = 1024


class HeldPlaces:
    """Runs of places by row, in growing columns. Setting n rows takes O(n places) on average.

    >>> held = HeldPlaces()
    >>> held.put(np.array([2, 0]), np.array([1, 2]), 3), held.put(np.array([2]), np.array([3]), 3)
    (None, None)
    >>> held.runs(np.array([0, 2, -1])).places.tolist()
    [1, 2, 3, 4, 5]
    """

    def __init__(self) -> None:
        self._starts: IntArray = np.zeros(1, dtype=np.int64)
        self._counts: IntArray = np.zeros(1, dtype=np.int64)
        self._used = 0
        self.room = 0
        """Upper bound of the places, excluded."""

    def runs(self, rows: IntArray, *, least: int = 0) -> Runs:
        """Return the places of some rows; with ``least`` 1, a row without any has the place -1."""
        return runs_at(self._starts[rows], self._counts[rows], least=least)

    def release(self, rows: IntArray) -> None:
        """Take the places of rows away, if they have any."""
        self._counts[rows[rows < len(self._counts) - 1]] = 0

    def put(self, rows: IntArray, counts: IntArray, room: int) -> IntArray | None:
        """Give places to rows below ``room``, in place of those that they have.

        Return the old places of the values that are kept, in their new order, if they have moved.
        """
        self._grow(room)
        self._counts[rows] = 0
        count, kept = int(counts.sum()), None
        if self._used + count > self.room and 2 * int(self._counts.sum()) < self._used:
            kept = self._gather()
        self._starts[rows] = self._used + np.cumsum(counts) - counts
        self._counts[rows] = counts
        self._used += count
        if self._used > self.room:
            self.room = max(_LEAST, self._used + self._used // 4)
        return kept

    def _gather(self) -> IntArray:
        """Bring all places together and return where they were."""
        rows = np.flatnonzero(self._counts)
        kept = self.runs(rows).places
        counts = self._counts[rows]
        self._starts[rows] = np.cumsum(counts) - counts
        self._used = len(kept)
        return kept

    def _grow(self, room: int) -> None:
        # The last cell is that of row -1, which has no places.
        more = room + 1 - len(self._counts)
        if more > 0:
            self._starts = np.concatenate([self._starts, np.zeros(more, dtype=np.int64)])
            self._counts = np.concatenate([self._counts, np.zeros(more, dtype=np.int64)])
