"""Positions of a stream's elements in event-time order, given once the watermark has passed them.

The last n elements therefore depend neither on how a stream is cut into batches nor on which task
read it first, if none comes after the watermark.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import (
    State,
    pack,
    pack_parts,
    pack_table,
    reading,
    unpack,
    unpack_parts,
    unpack_table,
)
from acquatop.windows import Windows
from connectors.coded import plain
from connectors.mapping import BAD, SUBJECT, TIME

_KIND, _VERSION = "positions", 1
_NEVER = -(2**63)

_MILLISECONDS = Windows(width_ms=1 << 53, slide_ms=1)
"""Window of all events so far for each millisecond: it closes when they have their positions.

A late event changes the positions of all events behind it, so it belongs to all these windows.
"""


class Positions:
    """Numbering of decoded records: returns them in total order, with positions from 1 as times.

    An element is a good record. The order is that of event time; at equal times that of the
    subjects, then of their terms, in the order of the mapping, a term after none. Records that
    agree in all of this are interchangeable. With ``since_ms`` only later records count. The times
    of the last ``room`` elements are kept.

    An element costs its share of a sort of all elements since the last sort. Memory grows with the
    elements that the watermark has not passed, plus 16 bytes for each of the room.
    """

    def __init__(self, room: int, since_ms: int | None = None) -> None:
        self.count = 0
        """Number of elements that have a position."""
        self.until_ms: int | None = None
        """Time up to which all elements have a position: an element as old is late."""
        self.earliest_ms: int | None = None
        """Time of the oldest element that waits for its position."""
        self.late_until = 0
        """Last position whose window should have held a late element."""
        self._room: Final = room
        self._since_ms = _NEVER if since_ms is None else since_ms
        self._waiting: list[pa.RecordBatch] = []
        self._times: IntArray = np.empty(0, dtype=np.int64)
        """Times of the last elements that have a position."""

    def start_after(self, time_ms: int) -> None:
        """Count only elements after a time."""
        self._since_ms = max(time_ms, self._since_ms)

    def add(self, records: pa.RecordBatch) -> IntArray:
        """Add decoded records; return the times of good ones that are late."""
        counts = pc.and_(
            pc.is_null(records.column(BAD)), pc.greater(records.column(TIME), self._since_ms)
        )
        elements = _plain(records.filter(counts))
        if self.until_ms is None or not len(elements):
            self._wait(elements)
            return np.empty(0, dtype=np.int64)
        is_late = pc.less_equal(elements.column(TIME), self.until_ms)
        late = np.asarray(elements.column(TIME).filter(is_late).to_numpy(), dtype=np.int64)
        self._wait(elements.filter(pc.invert(is_late)))
        if len(late):
            self.late_until = max(self.late_until, self.last_with(int(late.max())))
        return late

    def last_with(self, time_ms: int) -> int:
        """Return the last position whose window would hold an element of a time."""
        newest = int(np.searchsorted(self._times, time_ms, side="right"))
        return self.count - len(self._times) + newest + self._room

    def _wait(self, elements: pa.RecordBatch) -> None:
        if len(elements):
            self._waiting.append(elements)
            earliest = pc.min(elements.column(TIME)).as_py()
            self.earliest_ms = (
                earliest if self.earliest_ms is None else min(earliest, self.earliest_ms)
            )

    def take_until(self, time_ms: int | None) -> pa.RecordBatch | None:
        """Return the elements up to a time, or all, in order and with positions as times.

        None if there are none. Elements that come later with such a time are late.
        """
        if time_ms is not None:
            self.until_ms = time_ms if self.until_ms is None else max(time_ms, self.until_ms)
        if self.earliest_ms is None or (time_ms is not None and self.earliest_ms > time_ms):
            return None
        waiting = pa.Table.from_batches(self._waiting)
        self._waiting, self.earliest_ms = [], None
        if time_ms is not None:
            is_due = pc.less_equal(waiting.column(TIME), time_ms)
            for batch in waiting.filter(pc.invert(is_due)).to_batches():
                self._wait(batch)
            waiting = waiting.filter(is_due)
        return self._numbered(_in_order(waiting))

    def _numbered(self, due: pa.RecordBatch) -> pa.RecordBatch:
        times = np.asarray(due.column(TIME).to_numpy(), dtype=np.int64)
        self._times = np.concatenate((self._times[-self._room :], times))
        positions = np.arange(self.count + 1, self.count + 1 + len(due), dtype=np.int64)
        self.count += len(due)
        return due.set_column(due.schema.get_field_index(TIME), TIME, pa.array(positions))

    def time_of(self, position: int) -> int:
        """Return the time of an element: one of the room, or of those that were taken last."""
        return int(self._times[position - 1 - self.count])

    def first_after(self, time_ms: int) -> int:
        """Return the position of the first element after a time, of those that were taken last."""
        before = int(np.searchsorted(self._times, time_ms, side="right"))
        return self.count - len(self._times) + before + 1

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state. O(room + waiting elements)."""
        settings = {
            "count": self.count,
            "until_ms": self.until_ms,
            "since_ms": self._since_ms,
            "late_until": self.late_until,
        }
        state = State(settings, {"times": {"times": self._times[-self._room :]}})
        parts = {"state": pack(_KIND, _VERSION, state)}
        if self._waiting:
            parts["waiting"] = pack_table(pa.Table.from_batches(self._waiting))
        return pack_parts(parts)

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            state = unpack(_KIND, _VERSION, parts["state"])
            self.count, self.until_ms = state.settings["count"], state.settings["until_ms"]
            self._since_ms, self.late_until = (
                state.settings["since_ms"],
                state.settings["late_until"],
            )
            self._times = state.tables["times"]["times"]
            waiting = unpack_table(parts["waiting"]).to_batches() if "waiting" in parts else []
        self._waiting, self.earliest_ms = [], None
        for batch in waiting:
            self._wait(batch)


def answered_until(positions: Positions) -> AnsweredSoFar:
    """Return a window for each millisecond: an event is late once its millisecond is over."""
    until = positions.until_ms
    return AnsweredSoFar(_MILLISECONDS, None if until is None else _MILLISECONDS.first(until))


def _plain(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return records with values in place of codes, which cannot be sorted or concatenated."""
    return pa.RecordBatch.from_arrays(list(map(plain, records.columns)), names=records.schema.names)


def _in_order(elements: pa.Table) -> pa.RecordBatch:
    """Return elements in their total order. O(n log n)."""
    said = [name for name in elements.column_names if name not in (TIME, SUBJECT, BAD)]
    # Descending, then reversed: null comes last in every order of Arrow's.
    keys = [(name, "descending") for name in (TIME, SUBJECT, *said)]
    order = pc.sort_indices(elements, sort_keys=keys).to_numpy()[::-1]
    return elements.take(pa.array(order)).combine_chunks().to_batches()[0]
