"""Which rows were needed longest ago."""

from __future__ import annotations

import numpy as np

from replica.store.columns import AnyArray, column, grown
from replica.store.contract import IntArray


class Recency:
    """In which round each row was last needed, the present one included; 4 bytes a row.

    >>> recency = Recency()
    >>> recency.make_room(3)
    >>> recency.need(np.array([0, 2]))
    >>> recency.end_round()
    >>> recency.need(np.array([2]))
    >>> recency.longest_ago(np.array([0, 1, 2]), 5).tolist()
    [0, 1]
    """

    def __init__(self) -> None:
        self.round = 1
        self._needed = column(0, 0, np.int32)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self._needed.nbytes

    def make_room(self, capacity: int) -> None:
        """Make room for rows up to a number."""
        self._needed = grown(self._needed, capacity, 0)

    def need(self, rows: IntArray) -> None:
        """Note that rows are needed in this round."""
        self._needed[rows] = self.round

    def begin(self, rows: IntArray) -> None:
        """Note that rows stand for other keys, not needed in this round, but known since the one before."""
        self._needed[rows] = self.round - 1

    def end_round(self) -> None:
        """Begin the next round."""
        self.round += 1

    def longest_ago(self, rows: IntArray, count: int) -> IntArray:
        """Return at most so many of some rows, those needed longest ago; none that is needed in this round. O(rows).

        Of rows that were needed at the same time the first go first.
        """
        needed = self._needed[rows].astype(np.int64)
        rows, needed = rows[needed < self.round], needed[needed < self.round]
        if len(rows) <= count:
            return rows
        return np.sort(rows[np.argpartition((needed << 32) + rows, count)[:count]])

    def columns(self, used: int) -> dict[str, AnyArray]:
        """Return all there is to know of the first rows, as arrays."""
        return {"needed": self._needed[:used]}

    def restore(self, needed: AnyArray, used: int) -> None:
        """Take in what another wrote; raises ValueError if it cannot be one's. There must be room."""
        if len(needed) != used or (needed > self.round).any():
            raise ValueError("when rows were needed is not as it should be")
        self._needed[:used] = needed
