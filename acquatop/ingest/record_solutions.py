"""Solutions of a pattern over records: by columns for those that are alone, else by an engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.column_pattern import ColumnPattern
from acquatop.ingest.record_graphs import Bindings, PatternOverGraphs, RecordRows
from acquatop.topk.contract import IntArray


@dataclass(frozen=True)
class RecordSolutions:
    """Pattern over graphs of records; ``columns`` is None if it needs the engine everywhere."""

    engine: PatternOverGraphs
    columns: ColumnPattern | None

    def solutions(self, graphs: IntArray, rows: RecordRows) -> Bindings:
        """Return the solutions over graphs of rows, by graph; ``graphs`` ascends."""
        if self.columns is None or not len(graphs):
            return self.engine.solutions(graphs, rows)
        begins = np.diff(graphs, prepend=graphs[0] - 1) != 0
        alone = begins & np.append(begins[1:], True)
        if alone.all():
            return _numbered(self.columns.solutions(rows), graphs)
        some, others = np.flatnonzero(alone), np.flatnonzero(~alone)
        return _together(
            _numbered(self.columns.solutions(rows.take(some)), graphs[some]),
            self.engine.solutions(graphs[others], rows.take(others)),
        )


def _numbered(found: Bindings, graphs: IntArray) -> Bindings:
    """Return solutions of rows as those of the rows' graphs."""
    return Bindings(graphs[found.graphs], found.terms)


def _together(some: Bindings, others: Bindings) -> Bindings:
    graphs = np.concatenate((some.graphs, others.graphs))
    order = np.argsort(graphs, kind="stable")
    terms = [
        pa.chunked_array(pair, pa.string()).combine_chunks().take(pa.array(order))
        for pair in zip(some.terms, others.terms, strict=True)
    ]
    return Bindings(graphs[order], terms)
