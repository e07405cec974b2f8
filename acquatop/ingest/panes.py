"""Buffer of solutions until their pane is complete; panes leave it in time order.

A pane is a stretch of time between window boundaries: all its solutions enter and leave every
window together. Holding a pane until the watermark has passed it puts late events in order, so
answers do not depend on how a stream is cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.solution_columns import GONE, IDENTITY
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
from connectors.mapping import TIME

_KIND, _VERSION = "panes", 1


@dataclass(frozen=True)
class Pane:
    """Solutions of one pane, one per identity, and the windows that hold them."""

    solutions: pa.Table
    first: int
    last: int


class PaneBuffer:
    """Solutions that wait for their pane to end.

    Memory grows with the solutions of incomplete panes: those since the last close, and those
    within the allowed lateness.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._sorted: pa.Table | None = None
        self._new: list[pa.Table] = []
        self._closed_ms: int | None = None

    def add(self, solutions: pa.Table) -> pa.Table:
        """Add solutions and return the late ones: a window of theirs has closed already."""
        late = solutions.slice(0, 0)
        if self._closed_ms is not None:
            is_late = pc.less_equal(solutions.column(TIME), self._closed_ms)
            late, solutions = (
                self._in_windows(solutions.filter(is_late)),
                solutions.filter(pc.invert(is_late)),
            )
        if len(solutions):
            self._new.append(solutions)
        return late

    def are_late(self, first: int) -> bool:
        """Return True if the solutions of a pane, given by its first window, are late now."""
        return self._closed_ms is not None and self._windows.bounds(first)[1] <= self._closed_ms

    def keep(self, chosen: Callable[[pa.Table], IntArray]) -> None:
        """Keep some of the waiting solutions, chosen by their positions."""
        waiting = self._waiting()
        if waiting is not None:
            kept = waiting.take(pa.array(np.sort(chosen(waiting)))).combine_chunks()
            self._sorted = kept if len(kept) else None

    def _in_windows(self, solutions: pa.Table) -> pa.Table:
        """Return the solutions that lie in some window."""
        if not len(solutions):
            return solutions
        firsts, lasts = self._windows.spans(solutions.column(TIME).to_numpy())
        return solutions.filter(pa.array(firsts <= lasts))

    def close_until(self, close_ms: int) -> None:
        """Mark windows as closed up to a time.

        No solution up to that time may be waiting; those that come afterwards are late.
        """
        self._closed_ms = close_ms

    def earliest_ms(self) -> int | None:
        """Return the time of the oldest waiting solution; None if none waits."""
        waiting = self._waiting()
        return waiting.column(TIME)[0].as_py() if waiting is not None else None

    def __len__(self) -> int:
        """Return the number of waiting solutions."""
        waiting = self._waiting()
        return 0 if waiting is None else len(waiting)

    def latest_ms(self) -> int | None:
        """Return the time of the newest waiting solution; None if none waits."""
        waiting = self._waiting()
        return waiting.column(TIME)[-1].as_py() if waiting is not None else None

    def take_until(self, close_ms: int) -> Iterator[Pane]:
        """Yield the complete panes up to a window's close, oldest first.

        Solutions that come later for these panes are late.
        """
        self._closed_ms = close_ms
        waiting = self._waiting()
        if waiting is None:
            return
        due = int(np.searchsorted(waiting.column(TIME).to_numpy(), close_ms, side="right"))
        self._sorted = waiting.slice(due) if due < len(waiting) else None
        yield from self._split(waiting.slice(0, due))

    def snapshot(self) -> bytes:
        """Return the whole state."""
        waiting = self._waiting()
        parts = {"state": pack(_KIND, _VERSION, State({"closed_ms": self._closed_ms}, {}))}
        return pack_parts(parts if waiting is None else {**parts, "waiting": pack_table(waiting)})

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            closed_ms = unpack(_KIND, _VERSION, parts["state"]).settings["closed_ms"]
            waiting = unpack_table(parts["waiting"]) if "waiting" in parts else None
        self._closed_ms, self._sorted, self._new = closed_ms, waiting, []

    def _waiting(self) -> pa.Table | None:
        """Return all waiting solutions, sorted by time.

        New ones are sorted in once, if they are not in order, then only sliced.
        """
        if self._new:
            held = [] if self._sorted is None else [self._sorted]
            self._sorted = _in_time_order(pa.concat_tables([*held, *self._new]).combine_chunks())
            self._new = []
        return self._sorted

    def _split(self, due: pa.Table) -> Iterator[Pane]:
        if not len(due):
            return
        first, last = self._windows.spans(due.column(TIME).to_numpy())
        # Times are sorted, so a pane is a stretch of rows.
        starts = np.flatnonzero(
            (np.diff(first, prepend=first[:1] - 1) != 0)
            | (np.diff(last, prepend=last[:1] - 1) != 0)
        )
        for start, stop in zip(starts, [*starts[1:], len(due)], strict=True):
            if first[start] <= last[start]:  # otherwise the pane lies in a gap between windows
                yield Pane(
                    _newest(due.slice(start, stop - start)), int(first[start]), int(last[start])
                )


def _in_time_order(solutions: pa.Table) -> pa.Table:
    """Return solutions sorted by time; those of a stream in order are not moved."""
    times = solutions.column(TIME).to_numpy()
    if (times[1:] >= times[:-1]).all():
        return solutions
    return solutions.sort_by(TIME).combine_chunks()


def _newest(solutions: pa.Table) -> pa.Table:
    """Return each identity's newest row; at equal times, the row with the greater terms.

    Any term is greater than none. Rows that are no solutions count too: which arrival is the latest
    must not depend on the query's filters.
    """
    in_order = pc.sort_indices(solutions.column(IDENTITY))
    if _is_new(solutions.column(IDENTITY).take(in_order)).all():
        return solutions.take(in_order).combine_chunks()
    keys = [(IDENTITY, "ascending"), (TIME, "descending")]
    keys += [(name, "descending") for name in solutions.column_names if name.startswith("?")]
    keys += [(GONE, "ascending")]
    ordered = solutions.sort_by(keys).combine_chunks()
    return ordered.filter(pa.array(_is_new(ordered.column(IDENTITY))))


def _is_new(identities: pa.ChunkedArray) -> BoolArray:
    """Return a mask of the sorted identities that differ from the one before."""
    several = identities.combine_chunks()
    if len(several) < 2:
        return np.ones(len(several), dtype=np.bool_)
    differs = pc.not_equal(several.slice(1), several.slice(0, len(several) - 1))
    return np.concatenate([[True], differs.to_numpy(zero_copy_only=False)])
