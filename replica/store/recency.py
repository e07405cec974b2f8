"""Recency of rows, for eviction."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from replica.store.columns import AnyArray, column, grown
from replica.store.contract import IntArray


class Recency:
    """Last round in which each row was needed, the present one included; 4 bytes per row.

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
        """Size in bytes."""
        return self._needed.nbytes

    def make_room(self, capacity: int) -> None:
        """Make room for rows up to a number."""
        self._needed = grown(self._needed, capacity, 0)

    def need(self, rows: IntArray) -> None:
        """Mark rows as needed in this round."""
        self._needed[rows] = self.round

    def begin(self, rows: IntArray) -> None:
        """Mark rows of new keys: not needed in this round, but known since the previous one."""
        self._needed[rows] = self.round - 1

    def end_round(self) -> None:
        """Begin the next round."""
        self.round += 1

    def longest_ago(self, rows: IntArray, count: int) -> IntArray:
        """Return at most ``count`` rows, least recently needed, none needed in this round. O(rows).

        Of rows needed at the same time the first are returned.
        """
        needed = self._needed[rows].astype(np.int64)
        rows, needed = rows[needed < self.round], needed[needed < self.round]
        if len(rows) <= count:
            return rows
        return np.sort(rows[np.argpartition((needed << 32) + rows, count)[:count]])

    def state(self, used: int) -> dict[str, AnyArray]:
        """Return the state of the first ``used`` rows as columns."""
        return {"needed": self._needed[:used]}

    def resume(self, state: Mapping[str, AnyArray], used: int) -> None:
        """Continue from a state; raises ValueError if it is invalid. There must be room for it."""
        needed = state["needed"]
        if len(needed) != used or (needed > self.round).any():
            raise ValueError("when rows were needed is not as it should be")
        self._needed[:used] = needed
