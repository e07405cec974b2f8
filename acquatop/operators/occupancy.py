"""Which windows hold any record of a stream: what decides which are answered, whatever a query takes of them."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sortedcontainers import SortedSet

from acquatop.windows import Windows
from connectors.mapping import BAD, TIME


class Occupancy:
    """The panes that hold a good record, each as the first and the last of its windows.

    Adding n records takes O(n log n) on arrays, and a close O(log p) for p panes; memory grows with the panes since
    the last close, and those of the window that closed then.
    """

    def __init__(self, windows: Windows) -> None:
        self.earliest_ms: int | None = None
        self._windows = windows
        # Both ends grow with time, so this is the panes' order in time.
        self._panes: SortedSet[tuple[int, int]] = SortedSet()
        self._closed: int | None = None

    def add(self, records: pa.RecordBatch) -> None:
        """Note when records happened; those that are too late for a window of theirs count for none."""
        times = records.column(TIME).filter(pc.is_null(records.column(BAD))).drop_null()
        if not len(times):
            return
        in_order = np.sort(times.to_numpy())
        earliest = int(in_order[0])
        self.earliest_ms = earliest if self.earliest_ms is None else min(earliest, self.earliest_ms)
        firsts, lasts = self._windows.spans(in_order)
        # A pane is a stretch of them: only where one begins is an object made.
        begins = np.flatnonzero(np.diff(firsts, prepend=firsts[0] - 1) | np.diff(lasts, prepend=lasts[0]))
        panes = zip(firsts[begins].tolist(), lasts[begins].tolist(), strict=True)
        self._panes.update(pane for pane in panes if self._closed is None or pane[0] > self._closed)

    def close(self, window: int) -> None:
        """Note that a window has closed."""
        self._closed = window
        while self._panes and self._panes[0][0] <= window and self._panes[0][1] < window:
            del self._panes[0]

    @property
    def is_empty(self) -> bool:
        """Whether the window that closed last held nothing."""
        return self._closed is None or not self._panes or self._panes[0][0] > self._closed

    @property
    def next(self) -> int | None:
        """The first window after the one that closed last to hold a record which that did not; None where none does."""
        at = 0 if self._closed is None else self._panes.bisect_left((self._closed + 1, -math.inf))
        return self._panes[at][0] if at < len(self._panes) else None

    @property
    def last(self) -> int | None:
        """The last window that opens before the newest record; None where no window is left that holds one."""
        return self._panes[-1][1] if self._panes else None
