"""Reducer that keeps the matches of a pattern that the driver may need.

It sends the records' columns: terms are made of them where they are needed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from acquatop.ingest.found import Found
from acquatop.ingest.match import Matcher
from acquatop.ingest.reduce.pane_pruning import KeptOfPane, PanePruning
from acquatop.ingest.reduce.panes import by_pane
from acquatop.ingest.solution_columns import GONE, IDENTITY
from acquatop.topk.columns import codes_of
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows

_LEFT_OUT = b"left out"


class Solutions:
    """Reducer that passes on a pattern's solutions.

    With ``pruning``, solutions are left out that can be no result. If only the latest arrival
    counts, those are left out that a newer one of their partition replaces in their pane. Rows
    that are left out are counted by pane, as they may be late.
    """

    def __init__(
        self, matcher: Matcher, windows: Windows | None, pruning: PanePruning | None = None
    ) -> None:
        self.matcher = matcher
        self.windows = windows
        self._pruning = pruning

    @property
    def prunes(self) -> bool:
        """True if the solutions kept depend on the queries."""
        return self._pruning is not None

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the columns of the solutions kept."""
        assert found is not None
        if self._pruning is not None:
            return _table(found, list(self._pruning.panes(found)))
        if self.windows is not None and self.matcher.arrivals == "latest":
            return _table(found, _newest(found, self.windows))
        return _table(found, None)


def solutions_in(matcher: Matcher, table: pa.Table) -> pa.Table:
    """Return the solutions of a table that was made by :class:`Solutions`, as columns."""
    if IDENTITY in table.column_names:  # as journals of older versions have them
        return table
    records = table.drop_columns([GONE]).combine_chunks()
    (batch,) = records.to_batches() or [pa.RecordBatch.from_pylist([], records.schema)]
    gone = np.asarray(table.column(GONE).to_numpy(), dtype=np.bool_)
    return matcher.table(Found(matcher, batch, gone))


def left_out_of(table: pa.Table) -> Sequence[tuple[int, int]]:
    """Return the first window of each pane of a table, and the number of rows left out of it."""
    said = (table.schema.metadata or {}).get(_LEFT_OUT)
    return [] if said is None else [(first, count) for first, count in json.loads(said)]


def _table(found: Found, panes: Sequence[KeptOfPane] | None) -> pa.Table:
    left_out = []
    if panes is not None:
        found = found.take(
            np.concatenate([np.empty(0, dtype=np.int64), *(pane.rows for pane in panes)])
        )
        left_out = [(pane.first, pane.left_out) for pane in panes if pane.left_out]
    columns = list(map(_without_unused, found.columns.columns))
    fields = [
        field.with_type(column.type)
        for field, column in zip(found.columns.schema, columns, strict=True)
    ]
    table = pa.table([*columns, found.gone], pa.schema([*fields, (GONE, pa.bool_())]))
    return table.replace_schema_metadata({_LEFT_OUT: json.dumps(left_out)} if left_out else None)


def _without_unused(column: pa.Array) -> pa.Array:
    """Return a column without a dictionary that is longer than itself."""
    is_coded = pa.types.is_dictionary(column.type)
    return column.cast(pa.string()) if is_coded and len(column.dictionary) > len(column) else column


def _newest(found: Found, windows: Windows) -> list[KeptOfPane]:
    """Return each pane's rows without those that a newer one of their subject replaces.

    Of rows of one subject and time all are kept: the driver compares their terms.
    """
    if not len(found):
        return []
    subjects = found.subjects.dictionary_encode()
    subject_of = np.asarray(subjects.indices.to_numpy(), dtype=np.int64)
    panes = [(first, np.arange(len(found))[at]) for first, _, at in by_pane(windows, found.times)]
    pane_of = np.full(len(found), -1)
    for number, (_, rows) in enumerate(panes):
        pane_of[rows] = number
    (codes,) = codes_of([pane_of * len(subjects.dictionary) + subject_of])
    newest = _newest_times(codes, found.times)
    is_newest = found.times == newest[codes]
    kept = [(first, rows[is_newest[rows]], len(rows)) for first, rows in panes]
    return [KeptOfPane(first, rows, count - len(rows)) for first, rows, count in kept]


def _newest_times(codes: IntArray, times: IntArray) -> IntArray:
    """Return the newest time of each code."""
    order = np.arange(len(times))
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
    newest = np.zeros(1 + int(codes.max(initial=-1)), dtype=np.int64)
    # If a code occurs again, the later assignment wins.
    newest[codes[order]] = times[order]
    return newest
