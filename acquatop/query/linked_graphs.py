"""Solutions of any pattern over linked records of a window."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.linked_matcher import LinkedGraphMatcher
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.query.held_records import in_order_of_coming, panes_of
from acquatop.query.linked_records import LinkedRecords
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.mapping import TIME


class LinkedGraphs:
    """Maker of a pattern's solutions, group by group of linked records.

    What a group's records say together holds until the oldest of them has gone, so that is the time
    of its solutions; what the others say is evaluated then. A record that comes joins the groups
    that it is linked with: their solutions are withdrawn, but for those that are the same.

    A record is evaluated once, and again at each close by which others of its group come or go:
    twice if they come and none goes.
    """

    def __init__(self, matcher: LinkedGraphMatcher, windows: Windows) -> None:
        self._matcher = matcher
        self._held = LinkedRecords(windows, matcher.links)

    def closing(self, window: int, panes: Iterable[Pane]) -> Iterator[Pane]:
        """Yield what records that come and go bring and take, by the panes of the oldest records.

        The solutions of a group go with its oldest record, so those of groups that lose records
        need not be withdrawn.
        """
        lost = self._held.close_before(window)
        before, new = self._held.groups, [pane for pane in panes if pane.last >= window]
        touched = self._held.come(new)
        lost = np.concatenate((lost, np.zeros(len(touched) - len(lost), dtype=np.bool_)))
        if not (touched | lost).any():
            return
        made = self._evaluated(touched | lost, self._held.groups)
        old = touched & ~lost & (np.arange(len(touched)) < len(before))
        if old.any():
            shown = self._evaluated(old, before)
            gone = _without(shown, made)
            if len(gone):
                at = gone.schema.get_field_index(GONE)
                gone = gone.set_column(at, GONE, pa.array(np.ones(len(gone), dtype=np.bool_)))
                yield Pane(gone, new[0].first, new[0].last)
            made = _without(made, shown)
        yield from panes_of(made, self._held.windows)

    def _evaluated(self, some: BoolArray, groups: IntArray) -> pa.Table:
        """Return the solutions of some records held, the first ones' groups given."""
        assert self._held.table is not None
        at = np.flatnonzero(some)
        places = in_order_of_coming(groups[at])
        order = np.argsort(places, kind="stable")
        return self._matcher.solutions(self._held.table.take(pa.array(at[order])), places[order])

    def open_from(self, window: int) -> None:
        """Keep all until the next window: it may change what the others say."""

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state. O(records held)."""
        return self._held.snapshot()

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self._held.resume(parts)


def _without(solutions: pa.Table, others: pa.Table) -> pa.Table:
    """Return the solutions that are not among others, with the same time."""
    return solutions.filter(pc.invert(pc.is_in(_dated(solutions), value_set=_dated(others))))


def _dated(solutions: pa.Table) -> pa.Array:
    times = solutions.column(TIME).cast(pa.string())
    dated = pc.binary_join_element_wise(solutions.column(IDENTITY), times, " ")
    return dated.combine_chunks() if isinstance(dated, pa.ChunkedArray) else dated
