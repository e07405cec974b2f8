"""Schedule of windows over several streams: time is that of the slowest stream."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.query.schedule.windows import ScheduledWindow, WindowSchedule


class SeveralStreams(WindowSchedule):
    """Schedule of windows, each over one of several streams.

    A stream that has ended does not hold up others. ``streams`` are the IRIs of the windows'
    streams, in the order of the windows.
    """

    def __init__(self, scheduled: Sequence[ScheduledWindow], streams: Sequence[str]) -> None:
        super().__init__(scheduled)
        self._streams = tuple(streams)
        self._watermarks: dict[str, float] = dict.fromkeys(streams, -math.inf)
        self._ended: set[str] = set()
        """Streams that have ended, as far as this process has seen: they hold up no other."""
        self._newest_ms = -math.inf

    def positions(self, stream: str) -> Sequence[int]:
        """Return the positions of the windows on a stream."""
        return [at for at, each in enumerate(self._streams) if each == stream]

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows on a stream, and how far each are answered."""
        return [self._scheduled[at].cursor.answered for at in self.positions(stream)]

    def start_after(self, after_ms: Mapping[str, int]) -> None:
        """Begin with windows that open at each stream's time or after it.

        That holds for windows on other streams, too: what they show is joined with all windows.
        """
        for time_ms in after_ms.values():
            for each in self._scheduled:
                each.cursor.start_from(each.cursor.windows.opening_from(time_ms))

    def reach(self, stream: str, watermark_ms: int) -> float:
        """Note a stream's watermark; return the time of the slowest stream."""
        self._watermarks[stream] = max(watermark_ms, self._watermarks[stream])
        self._newest_ms = max(watermark_ms, self._newest_ms)
        return self._time(self._ended)

    def begin(self, watermark_ms: float) -> None:
        """Find the first windows that are certain."""
        for each in self._scheduled:
            each.cursor.begin(each.earliest_ms, watermark_ms)

    def end(self, stream: str) -> float:
        """Note the end of a stream; return the time up to which windows are due now."""
        self._ended.add(stream)
        return self.due_at_end(stream)

    def due_at_end(self, stream: str) -> float:
        """Return the time up to which windows are due when a stream ends.

        After the last stream that is the time of the stream that got furthest, or the close of the
        last window that still holds a record.
        """
        time_ms = self._time({*self._ended, stream})
        if time_ms < math.inf:
            return time_ms
        # The windows that are answered must not depend on which stream ends last.
        last_close_ms = self.last_close_ms
        return self._newest_ms if last_close_ms is None else max(last_close_ms, self._newest_ms)

    def _time(self, ended: Collection[str]) -> float:
        """Return the time of the slowest stream, infinite once all have ended."""
        return min(
            (at for stream, at in self._watermarks.items() if stream not in ended),
            default=math.inf,
        )

    def settings(self) -> dict[str, Any]:
        """Return the progress of the streams as JSON."""
        return {"watermarks": self._watermarks, "newest_ms": self._newest_ms}

    def resume(self, settings: Mapping[str, Any]) -> None:
        """Restore the progress of the streams."""
        # A stream that had ended may go on; once it was noted so in its watermark.
        known = {stream: settings["watermarks"][stream] for stream in self._watermarks}
        self._watermarks = {
            stream: -math.inf if at == math.inf else at for stream, at in known.items()
        }
        self._newest_ms = settings["newest_ms"]
