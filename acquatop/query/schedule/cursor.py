"""Cursor in a sequence of windows: rules for the first window, and for runs of empty windows."""

from __future__ import annotations

from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.query.contract import MAX_EMPTY_WINDOWS
from acquatop.query.counters import WindowCounters
from acquatop.windows import Windows


class Cursor:
    """Place in a sequence of windows: the next to answer, and the last that has closed.

    The first window is the first after the stream's start if there is one, else the first that
    holds a record, once the watermark has passed that record.
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.next: int | None = 0 if windows.t0_ms is not None else None
        """Next window; None while it is not known."""
        self.closed: int | None = None
        """Last window that has closed."""

    @property
    def answered(self) -> AnsweredSoFar:
        """Windows, and how far they are answered."""
        return AnsweredSoFar(self.windows, self.closed, self.next)

    @property
    def next_close_ms(self) -> int | None:
        """Close of the next window; None while it is not known."""
        return None if self.next is None else self.windows.bounds(self.next)[1]

    def first_after(self, time_ms: int) -> int:
        """Return the first window that opens at a time or later and has not closed yet."""
        opening = self.windows.opening_from(time_ms)
        return opening if self.next is None else max(opening, self.next)

    def begin(self, earliest_ms: int | None, watermark_ms: float) -> bool:
        """Begin with the first window that holds the earliest record; return True if it does so.

        The first window is certain once the watermark has passed the record.
        """
        if self.next is not None or earliest_ms is None or earliest_ms > watermark_ms:
            return False
        self.next = self.windows.first(earliest_ms)
        return True

    def start_from(self, window: int) -> None:
        """Begin with a window, unless an earlier one has closed already."""
        self.next = window if self.next is None else max(window, self.next)

    def run_before(self, time_ms: int) -> int:
        """Return the number of windows, from the next one on, that close before a time."""
        return 0 if self.next is None else max(0, self.windows.first(time_ms) - self.next)

    def close(self, count: int = 1) -> int:
        """Close the next window, or several; return the last of them."""
        assert self.next is not None, "no window has begun"
        return self.close_through(self.next + count - 1)

    def close_through(self, window: int) -> int:
        """Close the windows up to one; return it."""
        self.closed, self.next = window, window + 1
        return window

    def skip(self, count: int, counters: WindowCounters) -> int:
        """Close several windows without an answer, and count them; return the last of them."""
        counters.skipped += count
        return self.close(count)


def is_jump(empty: int) -> bool:
    """Return True if a number of empty windows is too large to be answered one by one."""
    return empty > MAX_EMPTY_WINDOWS


def may_jump(span_ms: float, slide_ms: int) -> bool:
    """Return True if windows with a slide may be too many to be answered in a span of time."""
    return span_ms >= MAX_EMPTY_WINDOWS * slide_ms


def range_end(watermark_ms: float, earliest_ms: int | None) -> float:
    """Return the end of a run of windows without records: all of them close before that time.

    The run ends after the watermark, or with the earliest record that no window has held yet.
    """
    return watermark_ms + 1 if earliest_ms is None else min(earliest_ms, watermark_ms + 1)
