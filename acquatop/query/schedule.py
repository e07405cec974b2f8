"""Schedule of one window over one stream: the windows that are due, and those that are skipped."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from acquatop.query.contract import MAX_EMPTY_WINDOWS
from acquatop.query.non_empty_windows import NonEmptyWindows
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows


class Due(NamedTuple):
    """Window to answer; or, if ``is_skipped``, the last of a long run of empty windows."""

    window: int
    is_skipped: bool


class Schedule:
    """Order in which the windows of one stream close.

    The first window is the first that holds a record, once the watermark has passed that record; or
    the first after the stream's start. Memory is O(panes since the last close).
    """

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.next: int | None = 0 if windows.t0_ms is not None else None
        """Next window to answer; None while it is not known."""
        self.closed: int | None = None
        """Last window that has closed."""
        self._occupancy = NonEmptyWindows(windows)
        self._skipped = 0

    def first_after(self, time_ms: int) -> int:
        """Return the first window that opens at a time or later and has not closed yet."""
        opening = self.windows.opening_from(time_ms)
        return opening if self.next is None else max(opening, self.next)

    def note(self, panes: IntArray, earliest_ms: int | None) -> None:
        """Note the panes that hold new records, and the time of the earliest."""
        self._occupancy.note(panes, earliest_ms)

    def begin(self, watermark_ms: int, sinces: Sequence[int | None]) -> int | None:
        """Return the next window to answer; None while it is not known.

        ``sinces`` are the first windows of the members, None for a member that begins with the
        first record.
        """
        if self.next is None and None in sinces:
            earliest = self._occupancy.earliest_ms
            if earliest is not None and earliest <= watermark_ms:
                self.next = self.windows.first(earliest)
        known = [since for since in sinces if since is not None]
        if known and len(known) == len(sinces):
            # Earlier windows began without any of the members.
            self.next = max(min(known), min(known) if self.next is None else self.next)
        return self.next if sinces else None

    def due(self, watermark_ms: int) -> Iterator[Due]:
        """Yield the windows that close, each after the previous one was dealt with."""
        while self.next is not None and self.windows.bounds(self.next)[1] <= watermark_ms:
            run = self._empty_run(watermark_ms)
            is_skipped = run > MAX_EMPTY_WINDOWS
            if is_skipped:
                self._skipped += run
            window = self.next + run - 1 if is_skipped else self.next
            self.closed = window
            self._occupancy.close(window)
            yield Due(window, is_skipped)
            self.next = window + 1

    def _empty_run(self, watermark_ms: int) -> int:
        """Return the number of empty windows from the next one on; 0 if the last was not empty."""
        assert self.next is not None
        if not self._occupancy.is_empty:
            return 0
        until, occupied = self.windows.first(watermark_ms + 1), self._occupancy.next
        return (until if occupied is None else min(until, occupied)) - self.next

    def take_skipped(self) -> int:
        """Return the number of windows skipped since the last call."""
        skipped, self._skipped = self._skipped, 0
        return skipped

    def last_close_ms(self) -> int | None:
        """Return the close of the last window that opens before the newest record.

        None if none is left.
        """
        last = self._occupancy.last
        return None if last is None else self.windows.bounds(last)[1]

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""
        numbers = json.dumps([self.next, self.closed, self._skipped]).encode()
        return {"numbers": numbers, "occupancy": self._occupancy.snapshot()}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self.next, self.closed, *skipped = json.loads(parts["numbers"])
        self._skipped = skipped[0] if skipped else 0
        self._occupancy.resume(parts["occupancy"])
