"""Cuts of a partition where a record comes after a window that should hold it has closed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acquatop.ingest.reduce.late_finder import LateFinder
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.mapping import TIME

NO_TIME = np.iinfo(np.int64).min
"""Stand-in for the time of a record that has none."""


class Cut(NamedTuple):
    """Position before which a partition is cut, and the watermark that it has reached there."""

    at: int
    watermark_ms: int


@dataclass(frozen=True)
class ArrivalOrder:
    """Windows of a stream, and its watermark before a batch.

    A record closes windows for the records behind it in its partition. If one of these belongs into
    such a window, the partition is cut before it, as if two batches had come: so the same records
    in the same order give the same answers, wherever their source cuts them. With ``keeps_late``
    late records are passed on as text.
    """

    windows: Sequence[Windows]
    lateness_ms: int
    watermark_ms: int | None
    keeps_late: bool = False

    def segments(self, records: pa.RecordBatch) -> Iterator[tuple[pa.RecordBatch, LateFinder]]:
        """Yield the segments behind the first cut, each with a finder of its late records."""
        times = records.column(TIME).fill_null(NO_TIME).to_numpy()
        cuts = self.cuts(times)
        for (at, watermark_ms), (until, _) in pairwise([*cuts, Cut(len(records), 0)]):
            closed = [(each, each.first(watermark_ms + 1) - 1) for each in self.windows]
            yield records.slice(at, until - at), LateFinder(closed, keeps=self.keeps_late)

    def cuts(self, times: IntArray) -> list[Cut]:
        """Return the cuts of a partition with some times; ``NO_TIME`` is no time.

        One vectorised pass, and as many steps as there are records out of order by more than the
        lateness. There are at most as many cuts as windows that close.

        >>> order = ArrivalOrder([Windows(10, 10)], lateness_ms=0, watermark_ms=None)
        >>> order.cuts(np.array([1, 11, 5, 6, 21, 15]))
        [Cut(at=2, watermark_ms=10), Cut(at=5, watermark_ms=20)]
        >>> order.cuts(np.array([1, 5, 11, 21]))
        []
        """
        newest = np.maximum.accumulate(times)
        start = NO_TIME if self.watermark_ms is None else self.watermark_ms
        reached = np.full(len(times), start, dtype=np.int64)
        known = newest[:-1] != NO_TIME
        reached[1:][known] = np.maximum(start, newest[:-1][known] - self.lateness_ms - 1)
        behind = (times <= reached) & (times != NO_TIME) & (reached > start)
        found: list[Cut] = []
        for at in np.flatnonzero(behind).tolist():
            time_ms, until = int(times[at]), int(reached[at])
            if any(_closes(each, time_ms, start, until) for each in self.windows):
                found.append(Cut(at, until))
                start = until
        return found


def _closes(windows: Windows, time_ms: int, after_ms: int, until_ms: int) -> bool:
    """Return True if a window that holds a time closes after one time, and up to another one."""
    opens, closes = windows.bounds(windows.first(max(time_ms, after_ms + 1)))
    return opens < time_ms and closes <= until_ms
