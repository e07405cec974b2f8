"""Solutions of any pattern about one subject, over all that a window's records say of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.combining_graph_matcher import CombiningGraphMatcher
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import BoolArray
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.query.held_records import HeldRecords, in_order_of_coming
from acquatop.windows import Windows


class CombinedGraphs:
    """Maker of a pattern's solutions, subject by subject.

    What a subject's records say together holds until the oldest of them has gone, so that is the
    time of its solutions; what the others say is evaluated then. A new record may take solutions
    away, if the pattern has OPTIONAL, MINUS or EXISTS.

    A record is evaluated once, and again at each close by which others of its subject come or go.
    """

    def __init__(self, matcher: CombiningGraphMatcher, windows: Windows) -> None:
        self._matcher = matcher
        self._held = HeldRecords(windows)

    def closing(self, window: int, panes: Iterable[Pane]) -> Iterator[Pane]:
        """Yield what records that come and go bring and take, by the panes of the oldest records.

        The solutions of a subject go with its oldest record, so those of subjects that lose records
        need not be withdrawn.
        """
        lost = self._held.close_before(window)
        before = len(self._held)
        new = [pane for pane in panes if pane.last >= window]
        come = [self._held.come(pane.solutions)[0] for pane in new]
        for pane, codes in zip(new, come, strict=True):
            self._held.stay(pane, codes)
        touched = self._held.of(np.concatenate([lost[:0], *come]))
        is_lost = self._held.of(lost)
        if not (touched | is_lost).any():
            return
        made = self._evaluated(touched | is_lost)
        old = touched & ~is_lost & (np.arange(len(touched)) < before)
        if self._matcher.retracts and old.any():
            shown = self._evaluated(old)
            gone = _without(shown, made)
            if len(gone):
                at = gone.schema.get_field_index(GONE)
                gone = gone.set_column(at, GONE, pa.array(np.ones(len(gone), dtype=np.bool_)))
                yield Pane(gone, new[0].first, new[0].last)
            made = _without(made, shown)
        yield from self._held.panes(made)

    def _evaluated(self, some: BoolArray) -> pa.Table:
        """Return the solutions of some records held, the oldest of each subject first."""
        assert self._held.table is not None
        at = np.flatnonzero(some)
        places = in_order_of_coming(self._held.subjects[at])
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
    """Return the solutions that are not among others."""
    known = others.column(IDENTITY).combine_chunks()
    return solutions.filter(pc.invert(pc.is_in(solutions.column(IDENTITY), value_set=known)))
