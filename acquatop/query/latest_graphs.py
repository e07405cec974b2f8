"""Several solutions of each subject's latest record, if only that counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.latest_matcher import LatestGraphMatcher
from acquatop.ingest.panes import Pane
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.topk.snapshot import pack_table, reading, unpack_table
from acquatop.windows import Windows
from connectors.mapping import SUBJECT, TIME

_RECORDS = "combined records"


class LatestGraphs:
    """Maker of a pattern's solutions, record by record.

    The latest record of each subject is held: when a newer one comes, its solutions are withdrawn.
    Each record is evaluated twice at most.
    """

    def __init__(self, matcher: LatestGraphMatcher, windows: Windows) -> None:
        self._matcher = matcher
        self._windows = windows
        self._held: pa.Table | None = None

    def closing(self, window: int, panes: Iterable[Pane]) -> Iterator[Pane]:
        """Yield the solutions that records bring and replace; others go with their records."""
        self.open_from(window)
        for pane in panes:
            yield from self._solutions(pane)

    def _solutions(self, pane: Pane) -> Iterator[Pane]:
        """Yield the solutions that a pane's records bring, and those that they replace."""
        self.open_from(pane.first)
        newest = self._matcher.newest(pane.solutions)
        made = self._each(newest)
        if self._held is not None:
            is_old = pc.is_in(
                self._held.column(SUBJECT), value_set=newest.column(SUBJECT).combine_chunks()
            )
            shown = self._each(self._held.filter(is_old))
            gone = shown.filter(
                pc.invert(
                    pc.is_in(
                        shown.column(IDENTITY), value_set=made.column(IDENTITY).combine_chunks()
                    )
                )
            )
            if len(gone):
                at = gone.schema.get_field_index(GONE)
                gone = gone.set_column(at, GONE, pa.array(np.ones(len(gone), dtype=np.bool_)))
                yield Pane(gone, pane.first, pane.last)
            newest = pa.concat_tables([self._held.filter(pc.invert(is_old)), newest])
        self._held = newest.combine_chunks()
        if len(made):
            yield Pane(made, pane.first, pane.last)

    def _each(self, said: pa.Table) -> pa.Table:
        return self._matcher.solutions(said, np.arange(len(said)))

    def open_from(self, window: int) -> None:
        """Release what lies only in earlier windows."""
        if self._held is not None:
            lasts = self._windows.spans(np.asarray(self._held.column(TIME).to_numpy()))[1]
            if len(lasts) and lasts.min() < window:
                self._held = self._held.filter(pa.array(lasts >= window))

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state. O(records held)."""
        return {} if self._held is None else {_RECORDS: pack_table(self._held)}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        if _RECORDS in parts:
            with reading():
                self._held = unpack_table(parts[_RECORDS])
