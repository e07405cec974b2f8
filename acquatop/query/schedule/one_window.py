"""Schedule of one window over one stream, for members that begin at different windows."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.query.schedule.cursor import Cursor
from acquatop.query.schedule.non_empty_windows import NonEmptyWindows
from acquatop.query.schedule.windows import WindowSchedule
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows


class OneWindow(WindowSchedule):
    """Schedule of one window. Memory is O(panes since the last close)."""

    def __init__(self, windows: Windows) -> None:
        self._occupancy = NonEmptyWindows(Cursor(windows))
        super().__init__([self._occupancy])

    @property
    def cursor(self) -> Cursor:
        """Next window to answer, and the last that has closed."""
        return self._occupancy.cursor

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows, and how far they are answered."""
        return [self.cursor.answered]

    def note(self, panes: IntArray, earliest_ms: int | None) -> None:
        """Note the panes that hold new records, and the time of the earliest."""
        self._occupancy.note(panes, earliest_ms)

    def begin(self, watermark_ms: float, sinces: Sequence[int | None]) -> int | None:
        """Return the next window to answer; None while it is not known.

        ``sinces`` are the first windows of the members, None for a member that begins with the
        first record.
        """
        if None in sinces:
            self.cursor.begin(self._occupancy.earliest_ms, watermark_ms)
        known = [since for since in sinces if since is not None]
        if known and len(known) == len(sinces):
            # Earlier windows began without any of the members.
            self.cursor.start_from(min(known))
        return self.cursor.next if sinces else None

    def end(self, stream: str) -> float:
        """Return the close of the last window that holds a record."""
        last = self.last_close_ms
        return -math.inf if last is None else last

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""
        numbers = json.dumps([self.cursor.next, self.cursor.closed]).encode()
        return {
            "numbers": numbers,
            "occupancy": self._occupancy.snapshot(),
            "tally": self.counters.snapshot(),
        }

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self.cursor.next, self.cursor.closed, *skipped = json.loads(parts["numbers"])
        self._occupancy.resume(parts["occupancy"])
        self.counters.resume(parts["tally"])
        # Older snapshots have the windows that were skipped last beside the counters.
        self.counters.skipped += sum(skipped)
