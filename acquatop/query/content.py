"""Content: the records that the open windows of a top-k evaluation hold, ranked by its members."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

import numpy as np
import pyarrow as pa

from acquatop.ingest.panes import Pane, PaneBuffer
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.pane_best import PaneRequest
from acquatop.ingest.reduce.pane_pruning import PanePruning, PrunableTable
from acquatop.ingest.reduce.solutions import Solutions, left_out_of, solutions_in
from acquatop.plan.bound import BoundQuery
from acquatop.query.combined import combined_of
from acquatop.query.ranking import ChangingRanking
from acquatop.topk.contract import IntArray
from connectors.mapping import TIME

_PANES = "panes"
_THINNED_FROM = 4_096
"""Number of waiting solutions from which on those that can be no result are dropped."""


class Content(Protocol):
    """Records in, a ranking for each member out."""

    def enrol(self, bound: BoundQuery) -> ChangingRanking:
        """Return the ranking of one more member."""

    def leave(self, name: str) -> None:
        """Drop the ranking of a member."""

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducers for the stream's next records, with the replica's present values."""

    def reducers_ahead(self, *, may_close: bool) -> Sequence[Reducer] | None:
        """Return the reducers for records behind a batch that is still to be added.

        Return None if they depend on it. With ``may_close`` it may close a window.
        """

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

    Solutions wait until their pane is complete. With ``prunes``, scores never change and the same
    solution has the same score: executors leave out what can be no result, and from time to time
    the rest that waits is thinned out, too. If several records make a solution together, records
    wait (:mod:`acquatop.query.combined_records`). Memory is O(solutions since the last close, and
    of the lateness allowed), or O(k) for each of their panes, besides the content's own.
    """

    def __init__(
        self,
        bound: BoundQuery,
        content: SolutionContent,
        followers: Sequence[PaneFollower],
        *,
        prunes: bool = False,
    ) -> None:
        self._content = content
        self._followers = followers
        self._windows = bound.windows
        self._matcher = bound.matcher
        self._prunes = prunes
        self._requests: dict[str, PaneRequest] = {}
        self._numbers = bound.plan.score.stream_variables
        self._panes = PaneBuffer(bound.windows)
        self._combined = combined_of(bound)
        self._room = _THINNED_FROM

    def enrol(self, bound: BoundQuery) -> ChangingRanking:
        """Return the ranking of one more member."""
        plan = bound.plan
        self._requests[bound.name] = PaneRequest(plan.score, plan.k + plan.offset)
        return self._content.enrol(bound)

    def leave(self, name: str) -> None:
        """Drop the ranking of a member."""
        self._requests.pop(name, None)
        self._content.leave(name)

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducer that keeps the solutions that may be needed."""
        return [Solutions(self._matcher, self._windows, self._pruning())]

    def reducers_ahead(self, *, may_close: bool) -> Sequence[Reducer]:
        """Return the same: they depend on the queries alone."""
        return self.reducers()

    def _pruning(self) -> PanePruning | None:
        if not self._prunes or not self._requests:
            return None
        return PanePruning(self._windows, list(self._requests.values()), self._numbers)

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Buffer solutions until their pane is complete."""
        late = self._panes.add(solutions_in(self._matcher, part.table))
        if len(late):
            for first, last in distinct_spans(
                *self._windows.spans(np.asarray(late.column(TIME).to_numpy()))
            ):
                self._content.note_late(first, last)
        self._thin_out()
        left_out = left_out_of(part.table)
        return len(late) + sum(count for first, count in left_out if self._panes.are_late(first))

    def _thin_out(self) -> None:
        """Drop waiting solutions that can be no result, once there are twice as many as before."""
        pruning = self._pruning()
        if pruning is None or len(self._panes) < self._room:
            return

        def chosen(table: pa.Table) -> IntArray:
            rows = [pane.rows for pane in pruning.panes(PrunableTable(table))]
            return np.concatenate([np.empty(0, dtype=np.int64), *rows])

        self._panes.keep(chosen)
        self._room = max(_THINNED_FROM, 2 * len(self._panes))

    def complete(self, window: int) -> None:
        """Pass on the panes that end by the window's close."""
        panes = self._panes.take_until(self._windows.bounds(window)[1])
        self._pass_on(panes if self._combined is None else self._combined.closing(window, panes))

    def _pass_on(self, panes: Iterable[Pane]) -> None:
        for pane in panes:
            self._content.add_pane(pane)
            for follower in self._followers:
                follower.add_pane(pane)

    def values_changed(self) -> None:
        """Forward the call."""
        self._content.values_changed()

    def open_from(self, window: int) -> None:
        """Release earlier records, and pass it on."""
        if self._combined is not None:
            self._combined.open_from(window)
        self._content.open_from(window)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""
        combined = {} if self._combined is None else self._combined.snapshot()
        return {_PANES: self._panes.snapshot(), **combined, **self._content.snapshot()}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self._panes.resume(parts[_PANES])
        if self._combined is not None:
            self._combined.resume(parts)
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
