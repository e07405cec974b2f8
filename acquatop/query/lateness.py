"""Lateness of records for queries that each have windows of their own."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import IntArray
from acquatop.topk.shared.periodic_times import BEFORE_ALL
from acquatop.windows import Windows


class ArrivalWatermarks(NamedTuple):
    """Progress of time at the arrival of each of some records.

    All windows that close at ``closed_ms`` or before it had closed, and, if a recording had ended,
    those that open before ``ended_ms``.
    """

    closed_ms: IntArray
    ended_ms: IntArray

    @classmethod
    def at(cls, closed_ms: int, ended_ms: int, count: int) -> Self:
        """Return the same arrival time for several records."""
        return cls(np.full(count, closed_ms), np.full(count, ended_ms))

    @classmethod
    def in_time(cls, count: int) -> Self:
        """Return the arrival time of records that came before any window of theirs had closed."""
        return cls.at(BEFORE_ALL, BEFORE_ALL, count)

    def take(self, at: IntArray | slice) -> ArrivalWatermarks:
        """Return the arrival times of some of the records."""
        return ArrivalWatermarks(self.closed_ms[at], self.ended_ms[at])


class AnsweredWindows(NamedTuple):
    """Windows of a query that are answered: from ``first`` on, None while it is unknown.

    It became known after windows of others had closed up to ``begun_ms``.
    """

    windows: Windows
    first: int | None
    begun_ms: int = BEFORE_ALL

    def are_late(self, times: IntArray, came: ArrivalWatermarks) -> BoolArray:
        """Return a mask of the records that came after a window of theirs had been answered.

        >>> came = ArrivalWatermarks.at(13, BEFORE_ALL, 3)
        >>> AnsweredWindows(Windows(9, 3, 0), 1).are_late(np.array([9, 12, 13]), came).tolist()
        [True, True, False]
        """
        if self.first is None:
            return np.zeros(len(times), dtype=np.bool_)
        firsts, _ = self.windows.spans(times)
        closed_ms = np.where(came.closed_ms > self.begun_ms, came.closed_ms, BEFORE_ALL)
        closed = np.maximum(
            self.windows.spans(closed_ms + 1)[0] - 1, self.windows.spans(came.ended_ms)[1]
        )
        late: BoolArray = (closed >= self.first) & (firsts <= closed)
        return late

    def are_within(self, times: IntArray) -> BoolArray:
        """Return a mask of the times that lie in any window."""
        firsts, lasts = self.windows.spans(times)
        within: BoolArray = firsts <= lasts
        return within
