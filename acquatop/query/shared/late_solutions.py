"""Late solutions: too late for one query, whose window had closed, but not for all others."""

from __future__ import annotations

import numpy as np

from acquatop.query.lateness import AnsweredWindows, ArrivalWatermarks
from acquatop.topk.contract import NO_ROWS, FloatArray, IntArray, Rows, Top
from acquatop.topk.order import best
from acquatop.topk.pane_top import Scored
from acquatop.topk.snapshot import State, pack, reading, rows_of, table_of, unpack

_KIND, _VERSION = "stragglers", 1


class LateSolutions:
    """Late solutions, kept beside a structure whose time has passed them and added to its answers.

    Memory grows with the solutions that any query still has in an open window, unless they are
    known to have k better ones in the same pane and batch. An answer takes O(n).
    """

    def __init__(self) -> None:
        self._merits = np.empty(0)
        self._rows = NO_ROWS
        self._came = ArrivalWatermarks.in_time(0)

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, scored: Scored, came: ArrivalWatermarks) -> None:
        """Add solutions, with the progress of time at their arrival."""
        if not len(scored):
            return
        if not len(self):
            self._merits, self._rows, self._came = scored.merits, scored.rows, came
            return
        self._merits = np.concatenate((self._merits, scored.merits))
        self._rows = Rows.together((self._rows, scored.rows))
        self._came = ArrivalWatermarks(
            *(np.concatenate(columns) for columns in zip(self._came, came, strict=True))
        )

    def among(self, top: Top, answered: AnsweredWindows, k: int) -> Top:
        """Return a window's best, with the late solutions that belong there."""
        if not len(self):
            return top
        opens, closes = answered.windows.bounds(top.window)
        times = self._rows.times
        at = np.flatnonzero((times > opens) & (times <= closes))
        at = at[~answered.are_late(times[at], self._came.take(at))]
        if not len(at):
            return top
        merits, rows = self._together(top, at)
        order = best(k, merits, rows.times, rows.identities)
        return Top(top.window, rows.take(order), merits[order])

    def _together(self, top: Top, at: IntArray) -> tuple[FloatArray, Rows]:
        mine = self._rows.take(at)
        if not len(top):
            return self._merits[at], mine
        return np.concatenate((top.merits, self._merits[at])), Rows.together((top.rows, mine))

    def release(self, until: int) -> None:
        """Drop solutions up to a time."""
        if len(self):
            at = np.flatnonzero(self._rows.times > until)
            self._merits, self._rows, self._came = (
                self._merits[at],
                self._rows.take(at),
                self._came.take(at),
            )

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state."""
        tables = {}
        if len(self):
            tables["rows"] = table_of(self._rows)
            tables["came"] = {"merits": self._merits, **self._came._asdict()}
        return pack(_KIND, _VERSION, State({}, tables))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            tables = unpack(_KIND, _VERSION, snapshot).tables
            if "rows" in tables:
                columns = dict(tables["came"])
                self.add(
                    Scored(columns.pop("merits"), rows_of(tables["rows"])),
                    ArrivalWatermarks(**columns),
                )
