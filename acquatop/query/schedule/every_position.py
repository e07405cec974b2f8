"""Schedule of windows over positions: every position has an element, so no window is empty."""

from __future__ import annotations

import math
from collections.abc import Sequence

from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.query.schedule.contract import Schedule
from acquatop.query.schedule.cursor import Cursor
from acquatop.windows import Windows


class EveryPosition(Schedule[range]):
    """Schedule of one window over positions, from 1 on. All windows that are due close at once."""

    def __init__(self, windows: Windows) -> None:
        self._cursor = Cursor(windows)
        self._cursor.start_from(0)

    @property
    def next_close_ms(self) -> int | None:
        """Position at which the next window closes."""
        return self._cursor.next_close_ms

    @property
    def next(self) -> int:
        """Next window to answer."""
        assert self._cursor.next is not None
        return self._cursor.next

    @property
    def next_open_ms(self) -> int:
        """Position after which the next window opens."""
        return self._cursor.windows.bounds(self.next)[0]

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows over positions, and how far they are answered."""
        return [self._cursor.answered]

    def end(self, stream: str) -> float:
        """Return minus infinity: no element closes a window that is not full."""
        return -math.inf

    def _take(self, closes_ms: int, watermark_ms: float) -> range:
        first = self.next
        self._cursor.close(self._cursor.run_before(int(watermark_ms) + 1))
        return range(first, self.next)

    def resume(self, window: int) -> None:
        """Continue with a window."""
        self._cursor.next, self._cursor.closed = window, window - 1 if window else None
