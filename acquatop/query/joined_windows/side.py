"""Side of a join of windows: one window's content, and what it shows since its last close."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import pyarrow as pa

from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates.ranking import AggregateRanking
from acquatop.query.content import Content
from acquatop.query.exactness import Extents
from acquatop.query.schedule.cursor import Cursor
from acquatop.query.schedule.non_empty_windows import NonEmptyWindows
from acquatop.query.topk.retained import RetainedTopKN
from acquatop.topk.contract import FloatArray, Rows
from acquatop.topk.snapshot import pack_parts, unpack_parts

_OPERATOR, _OCCUPANCY, _CONTENT = "operator", "occupancy", "content "
"""Names of the parts of snapshots; the last begins those of the content."""


class WindowSide:
    """Content of one of several windows that are joined.

    It shows what its window held at its last close, until the next. Memory is O(solutions), or
    O(keys) with aggregates, of the open windows and the last that has closed.
    """

    def __init__(self, bound: BoundQuery, content: Content) -> None:
        self.bound = bound
        self.occupancy = NonEmptyWindows(Cursor(bound.windows))
        self._content = content
        ranking = content.enrol(bound)
        assert isinstance(ranking, AggregateRanking | RetainedTopKN), "nothing is dropped"
        self._ranking = ranking
        self._shown: Rows | None = None

    @property
    def cursor(self) -> Cursor:
        """Next window to close, and the last that has closed, which is shown."""
        return self.occupancy.cursor

    # Records in -----------------------------------------------------------------------------------

    def reducers(self) -> Sequence[Reducer]:
        """Return the content's reducers."""
        return self._content.reducers()

    def reducers_ahead(self, *, may_close: bool) -> Sequence[Reducer] | None:
        """Return the content's reducers for records behind a batch that is still to be added."""
        return self._content.reducers_ahead(may_close=may_close)

    def add(self, part: Part) -> int:
        """Take in one partition; return the number of late solutions."""
        self.occupancy.note(part.panes, part.facts.earliest_ms)
        return self._content.add(part, [self.bound.name], self.occupancy.closed)

    # Windows out ----------------------------------------------------------------------------------

    def close(self, window: int) -> None:
        """Show a window that has closed, and release what only earlier ones hold.

        That includes records from before the first window, which nobody counts.
        """
        self._ranking.close_before(window)
        self._content.open_from(window)
        self._content.complete(window)
        self._ranking.settle(window)
        self._shown = None

    def pass_by(self, time_ms: int) -> None:
        """Note that the query has answered up to a time: if no window has begun, none goes back.

        Records that lie in a window up to that time are late from then on. None waits, or a window
        would have begun.
        """
        if self.cursor.next is None:
            window = self.cursor.windows.first(time_ms + 1) - 1
            self._content.complete(window)
            self.occupancy.close(window)

    @property
    def rows(self) -> Rows:
        """The solutions that the window shows: none before its first close."""
        if self._shown is None:
            window = self.cursor.closed
            self._shown = self._ranking.everything(-1 if window is None else window)
        return self._shown

    @property
    def is_uncertain(self) -> bool:
        """True if the window that is shown, or was passed by, lacks a late record."""
        window = self.occupancy.closed
        return window is not None and self._ranking.is_uncertain(window)

    def column(self, name: str) -> pa.Array:
        """Return the terms of a variable of the solutions that the window shows."""
        return self._ranking.terms_of(self.rows, name)

    def numbers(self, name: str) -> FloatArray:
        """Return the numbers of a variable of the solutions that the window shows."""
        return self._ranking.numbers_of(self.rows, name)

    def extents(self) -> Extents:
        """Return the sizes of the aggregates that the window shows; none of solutions.

        An aggregate that is too large may be no number that is joined.
        """
        window = self.cursor.closed
        if window is None or not isinstance(self._ranking, AggregateRanking):
            return {}
        return self._ranking.extents(window)

    def terms(self, at: int) -> Mapping[str, str]:
        """Return the terms of one of the solutions that the window shows."""
        return self._ranking.terms(self.rows, at)

    def ratios(self, at: int) -> Mapping[str, Fraction]:
        """Return the averages of one of the solutions that the window shows."""
        return self._ranking.ratios(self.rows, at)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state, but for the cursor's numbers."""
        parts = {f"{_CONTENT}{name}": each for name, each in self._content.snapshot().items()}
        own = {_OPERATOR: self._ranking.snapshot(), _OCCUPANCY: self.occupancy.snapshot()}
        return pack_parts({**own, **parts})

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot of the same side, before anything is added."""
        parts = unpack_parts(snapshot)
        self.occupancy.resume(parts[_OCCUPANCY])
        self._content.leave(self.bound.name)
        self._content.resume(
            {
                name.removeprefix(_CONTENT): each
                for name, each in parts.items()
                if name.startswith(_CONTENT)
            }
        )
        ranking = self._content.enrol(self.bound)
        assert isinstance(ranking, AggregateRanking | RetainedTopKN), "nothing is dropped"
        self._ranking = ranking
        ranking.resume(parts[_OPERATOR])
        self._shown = None

    def snapshot_committed(self) -> None:
        """Note that the last snapshot is durable."""
        self._content.snapshot_committed()

    def release(self) -> None:
        """Release the content's files."""
        self._content.release()
