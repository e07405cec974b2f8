"""Hold solutions until their pane is complete, then hand them on pane by pane in time order.

A pane is a stretch of time between window boundaries: all its solutions enter and leave every
window together. Holding a pane until the watermark has passed it puts late events in order, so
answers do not depend on how a stream is cut into batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.operators.match import IDENTITY
from acquatop.windows import Windows
from connectors.mapping import TIME


@dataclass(frozen=True)
class Pane:
    """The solutions of one pane, one per identity, and the windows that hold them."""

    solutions: pa.Table
    first: int
    last: int


class PaneBuffer:
    """Solutions that are waiting for their pane to end.

    Memory grows with the solutions of the panes that are not yet complete: those since the last
    close, and the lateness allowed.
    """

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._waiting: list[pa.Table] = []
        self._closed_ms: int | None = None

    def add(self, solutions: pa.Table) -> int:
        """Take in solutions and return how many came too late: their window has closed already."""
        late = 0
        if self._closed_ms is not None:
            timely = pc.greater(solutions.column(TIME), self._closed_ms)
            late = len(solutions) - (pc.sum(timely).as_py() or 0)
            solutions = solutions.filter(timely) if late else solutions
        if len(solutions):
            self._waiting.append(solutions)
        return late

    def earliest_ms(self) -> int | None:
        """Return the time of the oldest solution that is waiting."""
        return min((pc.min(table.column(TIME)).as_py() for table in self._waiting), default=None)

    def latest_ms(self) -> int | None:
        """Return the time of the newest solution that is waiting."""
        return max((pc.max(table.column(TIME)).as_py() for table in self._waiting), default=None)

    def take_until(self, close_ms: int) -> Iterator[Pane]:
        """Yield the complete panes up to a window's close, oldest first; later solutions for them are late."""
        self._closed_ms = close_ms
        if not self._waiting:
            return
        waiting = pa.concat_tables(self._waiting)
        is_due = pc.less_equal(waiting.column(TIME), close_ms)
        rest = waiting.filter(pc.invert(is_due))
        self._waiting = [rest] if len(rest) else []
        yield from self._split(waiting.filter(is_due))

    def _split(self, due: pa.Table) -> Iterator[Pane]:
        first, last = self._windows.spans(due.column(TIME).to_numpy())
        spans, pane_of = np.unique(np.stack([first, last]), axis=1, return_inverse=True)
        for number, (begin, end) in enumerate(spans.T.tolist()):
            if begin <= end:  # otherwise the pane lies between windows that do not meet
                yield Pane(_newest(due.filter(pa.array(pane_of.ravel() == number))), begin, end)


def _newest(solutions: pa.Table) -> pa.Table:
    """Return each identity's newest solution; of two of one time, the one whose terms are greater."""
    keys = [(IDENTITY, "ascending"), (TIME, "descending")]
    keys += [(name, "descending") for name in solutions.column_names if name.startswith("?")]
    ordered = solutions.sort_by(keys).combine_chunks()
    identity = ordered.column(IDENTITY).combine_chunks()
    if len(identity) < 2:
        return ordered
    is_new = pc.not_equal(identity.slice(1), identity.slice(0, len(identity) - 1)).to_numpy(zero_copy_only=False)
    return ordered.filter(pa.array(np.concatenate([[True], is_new])))
