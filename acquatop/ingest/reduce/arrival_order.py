"""Cuts of a partition where a record comes after the close of a window that should hold it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import IntArray
from acquatop.windows import Windows

NO_TIME = np.iinfo(np.int64).min
"""Stand-in for the time of a record that has none."""


@dataclass(frozen=True)
class ArrivalOrder:
    """Watermark before a batch, and the windows that it and the batch's records close.

    A record closes windows for the records behind it in its partition. If one of these belongs into
    such a window, the partition is cut before it, as if two batches had come: so the same records
    in the same order give the same answers, wherever their source cuts them.
    """

    windows: Sequence[Windows]
    lateness_ms: int
    watermark_ms: int | None

    def cuts(self, times: IntArray) -> list[int]:
        """Return the positions before which a partition is cut; ``NO_TIME`` is no time.

        One vectorised pass, and as many steps as there are records out of order by more than the
        lateness. There are at most as many cuts as windows that close.

        >>> order = ArrivalOrder([Windows(10, 10)], lateness_ms=0, watermark_ms=None)
        >>> order.cuts(np.array([1, 11, 5, 6, 21, 15])), order.cuts(np.array([1, 5, 11, 21]))
        ([2, 5], [])
        """
        newest = np.maximum.accumulate(times)
        start = NO_TIME if self.watermark_ms is None else self.watermark_ms
        reached = np.full(len(times), start, dtype=np.int64)
        known = newest[:-1] != NO_TIME
        reached[1:][known] = np.maximum(start, newest[:-1][known] - self.lateness_ms - 1)
        behind = (times <= reached) & (times != NO_TIME) & (reached > start)
        found: list[int] = []
        for at in np.flatnonzero(behind).tolist():
            time_ms, until = int(times[at]), int(reached[at])
            if any(_closes(each, time_ms, start, until) for each in self.windows):
                found.append(at)
                start = until
        return found


def _closes(windows: Windows, time_ms: int, after_ms: int, until_ms: int) -> bool:
    """Return True if a window that holds a time closes after one time, and up to another one."""
    opens, closes = windows.bounds(windows.first(max(time_ms, after_ms + 1)))
    return opens < time_ms and closes <= until_ms
