"""Schedule of some windows that are answered together, each over a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from acquatop.query.counters import WindowCounters
from acquatop.query.schedule.contract import Schedule
from acquatop.query.schedule.cursor import Cursor, is_jump, range_end


class ScheduledWindow(Protocol):
    """Window that knows where it holds records."""

    @property
    def cursor(self) -> Cursor:
        """Next window to answer, and the last that has closed."""

    @property
    def is_empty(self) -> bool:
        """True if the window that closed last is empty, or none has closed."""

    @property
    def earliest_ms(self) -> int | None:
        """Time of the earliest record: it decides on the first window. None if there is none."""

    @property
    def next_record_ms(self) -> int | None:
        """Time at which the window that closed last is followed by one with other records.

        Any time will do at which that window is the first to close. None if there is none.
        """

    @property
    def last_close_ms(self) -> int | None:
        """Close of the last window that holds a record so far; None if none is left."""

    def close(self, window: int) -> None:
        """Note that a window has closed, or that the windows up to it have been skipped."""


class Due(NamedTuple):
    """Windows that close at the same time, by their position; ``is_skipped``: no answer is due.

    After a long run of empty windows these are the last of the run.
    """

    closes_ms: int
    closed: Mapping[int, int]
    is_skipped: bool


class WindowSchedule(Schedule[Due]):
    """Schedule of windows that are answered together whenever one of them closes.

    Empty windows are skipped only if all windows are empty.
    """

    def __init__(self, scheduled: Sequence[ScheduledWindow]) -> None:
        self.counters = WindowCounters()
        self._scheduled = tuple(scheduled)

    @property
    def next_close_ms(self) -> int | None:
        """Close of the next window; None while none has begun."""
        closes = (each.cursor.next_close_ms for each in self._scheduled)
        return min((close for close in closes if close is not None), default=None)

    @property
    def last_close_ms(self) -> int | None:
        """Close of the last window that holds a record; None if none is left."""
        closes = (each.last_close_ms for each in self._scheduled)
        return max((close for close in closes if close is not None), default=None)

    def _take(self, closes_ms: int, watermark_ms: float) -> Due:
        runs = self._empty_runs(watermark_ms)
        is_skipped = is_jump(sum(runs.values()))
        if is_skipped:
            closed = {
                at: self._scheduled[at].cursor.skip(run, self.counters)
                for at, run in runs.items()
                if run
            }
        else:
            closed = {
                at: each.cursor.close()
                for at, each in enumerate(self._scheduled)
                if each.cursor.next_close_ms == closes_ms
            }
        for at, window in closed.items():
            self._scheduled[at].close(window)
        return Due(closes_ms, closed, is_skipped)

    def _empty_runs(self, watermark_ms: float) -> Mapping[int, int]:
        """Return the number of empty windows from the next ones on, by position."""
        if not all(each.is_empty for each in self._scheduled):
            return {}
        records = (each.next_record_ms for each in self._scheduled)
        earliest_ms = min((time_ms for time_ms in records if time_ms is not None), default=None)
        until_ms = int(range_end(watermark_ms, earliest_ms))
        return {at: each.cursor.run_before(until_ms) for at, each in enumerate(self._scheduled)}
