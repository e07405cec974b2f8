"""Aggregates per pane and key: as many rows as there are keys, whatever the number of events."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.ingest.found import Found
from acquatop.ingest.identity_hash import Hashes, IdentityHash
from acquatop.ingest.known_keys import HeldKeys, KnownKeys
from acquatop.ingest.match import Matcher
from acquatop.ingest.reduce.panes import by_pane, runs_of
from acquatop.ingest.reduce.partial_columns import COUNT, FIRST, HEAD, LAST, NEWEST, TAIL
from acquatop.ingest.reduce.sent_partials import sent
from acquatop.ingest.solution_columns import KEY
from acquatop.topk.aggregates.aggregate_totals import AggregateKind, folding_of
from acquatop.topk.aggregates.multi_aggregate import Valuewise
from acquatop.topk.aggregates.partials import Accumulator, Numbering, Partial
from acquatop.topk.contract import AnyArray, IntArray
from acquatop.windows import Windows

_COLUMN = "column"


class PanePartials:
    """Reducer that folds found records into partials.

    Sums are exact, so the cut into partitions changes no bit. With ``hashes`` each row has its
    key's hash, for a consumer that identifies keys by hash. The texts of the ``known`` keys are
    left out in other processes. O(events), and O(keys) for each pane.
    """

    def __init__(
        self,
        matcher: Matcher,
        windows: Windows,
        columns: AggregateColumns,
        hashes: IdentityHash | None = None,
        known: KnownKeys | HeldKeys | None = None,
    ) -> None:
        self.matcher = matcher
        self.windows = windows
        self._columns = columns
        self._hashes = hashes
        self._known = known

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return a row for each pane and key."""
        assert found is not None
        keys, times = found.keys, found.times
        codes = np.asarray(keys.indices.to_numpy(), dtype=np.int64)
        values = self._values(found)
        usable = (
            ~np.any([np.isnan(each) for each in values if each.dtype.kind == "f"], axis=0)
            if values
            else np.ones(len(times), dtype=bool)
        )
        if not usable.all():
            codes, times, values = (
                codes[usable],
                times[usable],
                tuple(column[usable] for column in values),
            )
        partials = list(self._folded(codes, times, values, len(keys.dictionary)))
        hashes = None if self._hashes is None else found.key_hashes(self._hashes)
        table = table_of(partials, keys.dictionary, hashes)
        known = None if self._known is None or hashes is None else self._known.mask(hashes)
        if known is None or not len(table):
            return table
        return sent(table, known[table.column(KEY).combine_chunks().indices.to_numpy()])

    def _values(self, found: Found) -> Valuewise:
        """Return each aggregate's values: zeros for the count, which needs none."""
        nothing = np.zeros(len(found))
        return tuple(nothing if of is None else found.addends(of) for of in self._columns.of)

    def _folded(
        self, codes: IntArray, times: IntArray, values: Valuewise, known: int
    ) -> Iterator[tuple[int, int, Partial]]:
        numbering = Numbering()
        numbering.grow(known)
        folder = Accumulator(
            folding_of(tuple(map(AggregateKind, self._columns.aggregates))), numbering
        )
        for first, last, at in by_pane(self.windows, times):
            of_pane = folder.fold(
                codes[at], times[at], tuple(column[at] for column in values), known
            )
            yield first, last, of_pane.listed()


def partials_of(table: pa.Table, codes: IntArray) -> Iterator[tuple[int, int, Partial]]:
    """Yield the partials of a table with their panes; ``codes`` are the codes of its keys here."""
    firsts, lasts, counts, newest = (
        np.array(table.column(name)) for name in (FIRST, LAST, COUNT, NEWEST)
    )
    columns = {
        int(name.removeprefix(_COLUMN)): np.array(table.column(name))
        for name in table.column_names
        if name.startswith(_COLUMN)
    }
    for first, last, at in runs_of(firsts, lasts):
        own = {number: column[at] for number, column in columns.items()}
        yield first, last, Partial(codes[at], counts[at], newest[at], own)


def partial_in(rows: pa.RecordBatch, codes: IntArray) -> Partial:
    """Return the rows of one pane as a partial; ``codes`` are the codes of its keys here.

    Columns are not copied.
    """
    columns = {
        int(name.removeprefix(_COLUMN)): np.asarray(rows.column(name).to_numpy())
        for name in rows.schema.names
        if name.startswith(_COLUMN)
    }
    counts, newest = (np.asarray(rows.column(name).to_numpy()) for name in (COUNT, NEWEST))
    return Partial(codes, counts, newest, columns)


def hashes_in(table: pa.Table | pa.RecordBatch) -> Hashes:
    """Return the hash of each row's key, from a table that was made with hashes."""
    heads, tails = (np.asarray(table.column(name).to_numpy()) for name in (HEAD, TAIL))
    return heads, tails


def table_of(
    partials: list[tuple[int, int, Partial]], names: pa.Array, hashes: Hashes | None = None
) -> pa.Table:
    """Return partials with their panes as a table, with keys as texts and, if given, hashes."""
    sizes = [len(partial.counts) for _, _, partial in partials]
    keys = _joined([partial.keys() for _, _, partial in partials])
    numbers = sorted({number for _, _, partial in partials for number in partial.columns})
    return pa.table(
        {
            FIRST: np.repeat([first for first, _, _ in partials], sizes).astype(np.int64),
            LAST: np.repeat([last for _, last, _ in partials], sizes).astype(np.int64),
            KEY: pa.DictionaryArray.from_arrays(pa.array(keys.astype(np.int32)), names),
            **({} if hashes is None else {HEAD: hashes[0][keys], TAIL: hashes[1][keys]}),
            COUNT: _joined([partial.counts for _, _, partial in partials]),
            NEWEST: _joined([partial.newest for _, _, partial in partials]),
            **{f"{_COLUMN}{number}": _column(number, partials) for number in numbers},
        }
    )


def _column(number: int, partials: list[tuple[int, int, Partial]]) -> AnyArray:
    """Return a column of all partials; zeros for partials that lack the column."""
    dtype = next(
        partial.columns[number].dtype for _, _, partial in partials if number in partial.columns
    )
    each = [
        partial.columns.get(number, np.zeros(len(partial.counts), dtype))
        for _, _, partial in partials
    ]
    return np.concatenate(each)


def _joined(arrays: list[IntArray]) -> IntArray:
    return np.concatenate([np.empty(0, dtype=np.int64), *arrays])
