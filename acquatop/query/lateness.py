"""For which queries something came too late, where each has windows of its own."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import IntArray
from acquatop.topk.shared.moments import BEFORE_ALL
from acquatop.windows import Windows


class Came(NamedTuple):
    """How far time had gone when each of some things came.

    All windows had closed that close at ``closed_ms`` or before it, and those that open before ``ended_ms``, where a
    recording had come to its end.
    """

    closed_ms: IntArray
    ended_ms: IntArray

    @classmethod
    def at(cls, closed_ms: int, ended_ms: int, count: int) -> Self:
        """Return it for several that came together."""
        return cls(np.full(count, closed_ms), np.full(count, ended_ms))

    @classmethod
    def in_time(cls, count: int) -> Self:
        """Return it for several that came before any window of theirs had closed."""
        return cls.at(BEFORE_ALL, BEFORE_ALL, count)

    def take(self, at: IntArray | slice) -> Came:
        """Return it for some of them."""
        return Came(self.closed_ms[at], self.ended_ms[at])


class Answered(NamedTuple):
    """The windows of a query that are answered: from the first on, None as long as that is not known.

    It became known after windows of others had closed until ``begun_ms``.
    """

    windows: Windows
    first: int | None
    begun_ms: int = BEFORE_ALL

    def are_late(self, times: IntArray, came: Came) -> BoolArray:
        """Say what came after a window of its own had been answered.

        >>> Answered(Windows(9, 3, 0), 1).are_late(np.array([9, 12, 13]), Came.at(13, BEFORE_ALL, 3)).tolist()
        [True, True, False]
        """
        if self.first is None:
            return np.zeros(len(times), dtype=np.bool_)
        firsts, _ = self.windows.spans(times)
        closed_ms = np.where(came.closed_ms > self.begun_ms, came.closed_ms, BEFORE_ALL)
        closed = np.maximum(self.windows.spans(closed_ms + 1)[0] - 1, self.windows.spans(came.ended_ms)[1])
        late: BoolArray = (closed >= self.first) & (firsts <= closed)
        return late

    def are_within(self, times: IntArray) -> BoolArray:
        """Say which times lie in any window."""
        firsts, lasts = self.windows.spans(times)
        within: BoolArray = firsts <= lasts
        return within
