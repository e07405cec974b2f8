"""Windows that hold any record of a stream: they decide which are answered, for every query."""

from __future__ import annotations

import math

import numpy as np
from sortedcontainers import SortedSet

from acquatop.query.schedule.cursor import Cursor
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import State, pack, reading, unpack

_KIND, _VERSION = "occupancy", 1


class NonEmptyWindows:
    """Panes that hold a good record, each as the first and the last of its windows.

    Adding n records takes O(n log n) on arrays, and a close O(log p) for p panes. Memory grows with
    the panes since the last close, and those of the window that closed then.
    """

    def __init__(self, cursor: Cursor) -> None:
        self.cursor = cursor
        self.earliest_ms: int | None = None
        # Both ends grow with time, so this is the panes' order in time.
        self._panes: SortedSet[tuple[int, int]] = SortedSet()
        self._closed: int | None = None

    def note(self, panes: IntArray, earliest_ms: int | None) -> None:
        """Note the panes that hold a record, given by the first and the last of their windows."""
        if earliest_ms is None:
            return
        each = zip(panes[:, 0].tolist(), panes[:, 1].tolist(), strict=True)
        open_panes = [pane for pane in each if self._closed is None or pane[0] > self._closed]
        self._panes.update(open_panes)
        if self._closed is not None and self.cursor.windows.first(earliest_ms) <= self._closed:
            # All that is known of the records that are on time is where their panes end.
            ends = (self.cursor.windows.bounds(first)[1] for first, _ in open_panes)
            earliest_ms = min(ends, default=None)
        known = (self.earliest_ms, earliest_ms)
        self.earliest_ms = min((each for each in known if each is not None), default=None)

    @property
    def closed(self) -> int | None:
        """Last window that has closed, or that was passed by before the first began."""
        return self._closed

    def close(self, window: int) -> None:
        """Note that a window has closed, or was passed by."""
        self._closed = window
        while self._panes and self._panes[0][0] <= window and self._panes[0][1] < window:
            del self._panes[0]

    @property
    def is_empty(self) -> bool:
        """True if the window that closed last was empty."""
        return self._closed is None or not self._panes or self._panes[0][0] > self._closed

    @property
    def next(self) -> int | None:
        """First window after the one that closed last to hold a record that the latter did not.

        None if there is none.
        """
        at = 0 if self._closed is None else self._panes.bisect_left((self._closed + 1, -math.inf))
        return self._panes[at][0] if at < len(self._panes) else None

    @property
    def next_record_ms(self) -> int | None:
        """Close of the :attr:`next` window; None if there is none."""
        window = self.next
        return None if window is None else self.cursor.windows.bounds(window)[1]

    @property
    def last_close_ms(self) -> int | None:
        """Close of the last window that opens before the newest record.

        None if no window left holds one.
        """
        return self.cursor.windows.bounds(self._panes[-1][1])[1] if self._panes else None

    def snapshot(self) -> bytes:
        """Return the whole state."""
        firsts, lasts = np.array(list(self._panes), dtype=np.int64).reshape(-1, 2).T
        settings = {"earliest_ms": self.earliest_ms, "closed": self._closed}
        return pack(_KIND, _VERSION, State(settings, {"panes": {"firsts": firsts, "lasts": lasts}}))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            state = unpack(_KIND, _VERSION, snapshot)
            columns = state.tables["panes"]
            panes = SortedSet(
                zip(columns["firsts"].tolist(), columns["lasts"].tolist(), strict=True)
            )
            self.earliest_ms, self._closed = state.settings["earliest_ms"], state.settings["closed"]
        self._panes = panes
