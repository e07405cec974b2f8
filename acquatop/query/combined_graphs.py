"""Solutions of any pattern about one subject, over all that a window's records say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.combining_graph_matcher import CombiningGraphMatcher
from acquatop.ingest.panes import Pane
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.query.held_records import HeldRecords, in_order_of_coming
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows


class CombinedGraphs:
    """Maker of a pattern's solutions, subject by subject.

    What a subject's records say together holds until the oldest of them has gone, so that is the
    time of its solutions; what the others say is evaluated then. A new record may take solutions
    away, if the pattern has OPTIONAL, MINUS or EXISTS.

    A record is evaluated once, and again with each that comes or goes of its subject.
    """

    def __init__(self, matcher: CombiningGraphMatcher, windows: Windows) -> None:
        self._matcher = matcher
        self._held = HeldRecords(windows)

    def changes(self, window: int) -> Iterator[Pane]:
        """Yield the solutions of subjects some of whose records have gone, before a window."""
        left = self._held.close_before(window)
        if len(left):
            said, subjects = self._held_of(left)
            yield from self._held.panes(self._evaluated(said, subjects))

    def solutions(self, pane: Pane) -> Iterator[Pane]:
        """Yield what a pane's records bring and take, by the panes of the oldest records."""
        yield from self.changes(pane.first)
        codes, together = self._held.come(pane.solutions)
        before, subjects = self._held_of(codes[together])
        every = pane.solutions if before is None else pa.concat_tables([before, pane.solutions])
        made = self._evaluated(every, np.concatenate((subjects, codes)))
        if before is not None and self._matcher.retracts:
            shown = self._evaluated(before, subjects)
            gone = _without(shown, made)
            if len(gone):
                at = gone.schema.get_field_index(GONE)
                gone = gone.set_column(at, GONE, pa.array(np.ones(len(gone), dtype=np.bool_)))
                yield Pane(gone, pane.first, pane.last)
            made = _without(made, shown)
        yield from self._held.panes(made)
        self._held.stay(pane, codes)

    def _held_of(self, codes: IntArray) -> tuple[pa.Table | None, IntArray]:
        """Return the records held of some subjects, and the subject of each."""
        is_held = self._held.of(codes)
        if self._held.table is None or not is_held.any():
            return None, self._held.subjects[:0]
        return self._held.table.filter(pa.array(is_held)), self._held.subjects[is_held]

    def _evaluated(self, said: pa.Table | None, subjects: IntArray) -> pa.Table:
        """Return the solutions of subjects, given all their records, the oldest pane first."""
        assert said is not None
        places = in_order_of_coming(subjects)
        order = np.argsort(places, kind="stable")
        return self._matcher.solutions(said.take(pa.array(order)), places[order])

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
