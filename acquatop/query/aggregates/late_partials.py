"""Late partial aggregates: those of panes of which a window has closed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.reduce.partial_columns import COUNT, FIRST, LAST
from acquatop.query.content import distinct_spans


@dataclass(frozen=True)
class SplitPartials:
    """Partial aggregates that came in time, and facts about the late ones.

    ``count`` is the number of late solutions, ``spans`` are their first and last windows.
    """

    in_time: pa.Table
    late: pa.Table
    count: int
    spans: set[tuple[int, int]]


def split_late(table: pa.Table, closed: int | None) -> SplitPartials:
    """Split partial aggregates by whether a window of their pane has closed."""
    firsts = np.asarray(table.column(FIRST).to_numpy())
    is_late = firsts <= closed if closed is not None else np.zeros(len(firsts), dtype=np.bool_)
    if not is_late.any():
        return SplitPartials(table, table.slice(0, 0), 0, set())
    count = int(np.asarray(table.column(COUNT).to_numpy())[is_late].sum())
    spans = distinct_spans(firsts[is_late], np.asarray(table.column(LAST).to_numpy())[is_late])
    return SplitPartials(table.filter(~is_late), table.filter(is_late), count, spans)
