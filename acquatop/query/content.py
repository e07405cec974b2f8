"""Content: the records that the open windows of a top-k evaluation hold, ranked by its members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from acquatop.ingest.panes import Pane, PaneBuffer
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.solutions import Solutions
from acquatop.plan.bind import BoundQuery
from acquatop.query.ranking import TopKOperator
from acquatop.topk.contract import IntArray
from connectors.mapping import TIME

_PANES = "panes"


class Content(Protocol):
    """Records in, a ranking for each member out."""

    def enrol(self, bound: BoundQuery) -> TopKOperator:
        """Return the ranking of one more member."""

    def leave(self, name: str) -> None:
        """Drop the ranking of a member."""

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducers for the stream's next records, with the replica's present values."""

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Take in one partition and return the number of late solutions.

        ``names`` are the members when it was reduced, ``closed`` is the last window that has
        closed.
        """

    def complete(self, window: int) -> None:
        """Note that all records of a closing window have come."""

    def values_changed(self) -> None:
        """Note that the replica has other values now."""

    def open_from(self, window: int) -> None:
        """Release records that lie only in earlier windows."""

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot, before any member is enrolled."""

    def snapshot_committed(self) -> None:
        """Note that the last snapshot is durable."""

    def release(self) -> None:
        """Release files; the queries are over."""


class SolutionContent(Content, Protocol):
    """Content that can also take in whole solutions, pane by pane in the order of time."""

    def add_pane(self, pane: Pane) -> None:
        """Take in the solutions of one pane."""

    def note_late(self, first: int, last: int) -> None:
        """Note a late solution of the windows ``first`` to ``last``: those still open lack it."""


class PaneFollower(Protocol):
    """Listener that sees the solutions of each pane as well."""

    def add_pane(self, pane: Pane) -> None:
        """See the solutions of one pane."""


class Buffered:
    """Decorator of a content whose arrivals may replace each other.

    Solutions wait until their pane is complete. Memory is O(solutions since the last close, and of
    the lateness allowed), besides the content's own.
    """

    def __init__(
        self, bound: BoundQuery, content: SolutionContent, followers: Sequence[PaneFollower]
    ) -> None:
        self._content = content
        self._followers = followers
        self._windows = bound.windows
        self._reducers: Sequence[Reducer] = [Solutions(bound.matcher, bound.windows)]
        self._panes = PaneBuffer(bound.windows)

    def enrol(self, bound: BoundQuery) -> TopKOperator:
        """Return the ranking of one more member."""
        return self._content.enrol(bound)

    def leave(self, name: str) -> None:
        """Drop the ranking of a member."""
        self._content.leave(name)

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducer that keeps all solutions."""
        return self._reducers

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Buffer solutions until their pane is complete."""
        late = self._panes.add(part.table)
        if len(late):
            for first, last in distinct_spans(
                *self._windows.spans(np.asarray(late.column(TIME).to_numpy()))
            ):
                self._content.note_late(first, last)
        return len(late)

    def complete(self, window: int) -> None:
        """Pass on the panes that end by the window's close."""
        for pane in self._panes.take_until(self._windows.bounds(window)[1]):
            self._content.add_pane(pane)
            for follower in self._followers:
                follower.add_pane(pane)

    def values_changed(self) -> None:
        """Forward the call."""
        self._content.values_changed()

    def open_from(self, window: int) -> None:
        """Pass it on."""
        self._content.open_from(window)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""
        return {_PANES: self._panes.snapshot(), **self._content.snapshot()}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self._panes.resume(parts[_PANES])
        self._content.resume(parts)

    def snapshot_committed(self) -> None:
        """Forward the call."""
        self._content.snapshot_committed()

    def release(self) -> None:
        """Forward the call."""
        self._content.release()


def distinct_spans(firsts: IntArray, lasts: IntArray) -> set[tuple[int, int]]:
    """Return the distinct pairs of first and last windows."""
    return set(zip(firsts.tolist(), lasts.tolist(), strict=True))
