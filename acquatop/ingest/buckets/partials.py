"""Aggregates per pane and key that stay where they are made; only their places are sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.buckets.sorted_hashes import buckets_of, unsigned
from acquatop.ingest.found import Found
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.match import Matcher
from acquatop.ingest.reduce.pane_partials import PanePartials, hashes_in
from acquatop.ingest.reduce.panes import runs_of
from acquatop.ingest.reduce.partial_columns import COUNT, FIRST, HEAD, LAST, NEWEST, TAIL
from acquatop.ingest.reduce.sent_partials import small
from acquatop.ingest.solution_columns import KEY
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows

FILE, START, BUCKETS = "file", "start", "buckets"
_SCHEMA = pa.schema(
    {
        FIRST: pa.int64(),
        LAST: pa.int64(),
        FILE: pa.string(),
        START: pa.int64(),
        BUCKETS: pa.list_(pa.int32()),
        COUNT: pa.int64(),
    }
)


class Chunks(NamedTuple):
    """Chunks of one pane in a file: the position of the first, and the bucket of each in turn."""

    first: int
    last: int
    file: str
    start: int
    buckets: list[int]


class BucketPartials:
    """Reducer that writes the partials of ``PanePartials`` to files, a chunk per pane and bucket.

    Keys are known by hashes, in ascending order within a chunk; their texts are a column of their
    own. A partition is written into one file. The table returned has a row for each pane: O(panes),
    whatever the number of keys.
    """

    def __init__(
        self,
        matcher: Matcher,
        windows: Windows,
        columns: AggregateColumns,
        buckets: int,
        folder: ChunkFolder,
        hashes: IdentityHash,
    ) -> None:
        self.matcher = matcher
        self.windows = windows
        self._partials = PanePartials(matcher, windows, columns, hashes)
        self._buckets = buckets
        self._folder = folder

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the places of each pane's partials, and the number of events in them."""
        table = self._partials.reduce(records, found)
        if found is None or not len(table):
            return _SCHEMA.empty_table()
        # Partitions with equal sums get different files: no two have a record in common, nor its
        # subject.
        origin = str(found.identities_at(np.array([0]))[0]).encode()
        return placed(table, self._buckets, self._folder, origin)


def placed(table: pa.Table, buckets: int, folder: ChunkFolder, origin: bytes) -> pa.Table:
    """Write partials with hashes, sorted by pane, into a file, and return their places."""
    firsts, lasts = (np.asarray(table.column(name).to_numpy()) for name in (FIRST, LAST))
    heads, _ = hashes_in(table)
    order = np.concatenate(
        [at.start + np.argsort(unsigned(heads[at])) for _, _, at in runs_of(firsts, lasts)]
    )
    numbers = buckets_of(heads[order], buckets)
    rows = stored(table.take(pa.array(order)))
    chunks = [rows.slice(start, stop - start) for start, stop in _runs(firsts, lasts, numbers)]
    name = folder.write(chunks, origin)
    return _told(name, firsts, lasts, numbers, np.asarray(table.column(COUNT).to_numpy()))


def stored(table: pa.Table) -> pa.RecordBatch:
    """Return partials with hashes as they are stored: keys as text, and no windows.

    Files cannot have a dictionary for each chunk.
    """
    columns = {}
    for name in table.column_names:
        column = table.column(name)
        if name == KEY:
            columns[name] = column.cast(pa.string())
        elif name not in (FIRST, LAST):
            is_kept = name in (HEAD, TAIL, NEWEST)
            columns[name] = column if is_kept else pa.chunked_array([small(column.to_numpy())])
    (rows,) = pa.table(columns).combine_chunks().to_batches()
    return rows


def restored(rows: pa.RecordBatch, first: int, last: int) -> pa.Table:
    """Return a chunk as the partials with hashes of a pane that it was stored from."""
    windows = {FIRST: np.full(len(rows), first), LAST: np.full(len(rows), last)}
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    return pa.table({**windows, **{name: _wide(each) for name, each in columns.items()}})


def _wide(column: pa.Array) -> pa.Array:
    return column.cast(pa.int64()) if column.type == pa.int32() else column


def chunks_in(table: pa.Table) -> Iterator[Chunks]:
    """Yield the chunks listed in the table of a partition."""
    for row in table.select([FIRST, LAST, FILE, START, BUCKETS]).to_pylist():
        yield Chunks(row[FIRST], row[LAST], row[FILE], row[START], row[BUCKETS])


def _told(
    name: str, firsts: IntArray, lasts: IntArray, buckets: IntArray, counts: IntArray
) -> pa.Table:
    starts = np.array([start for start, _ in _runs(firsts, lasts, buckets)])
    rows = []
    for start, stop in _runs(firsts, lasts):
        first, end = np.searchsorted(starts, [start, stop]).tolist()
        of_pane = buckets[starts[first:end]].tolist()
        said = (
            int(firsts[start]),
            int(lasts[start]),
            name,
            first,
            of_pane,
            int(counts[start:stop].sum()),
        )
        rows.append(dict(zip(_SCHEMA.names, said, strict=True)))
    return pa.Table.from_pylist(rows, _SCHEMA)


def _runs(*columns: IntArray) -> Sequence[tuple[int, int]]:
    """Return the runs of rows that are equal in all columns, as starts and excluded ends."""
    changes = np.any([np.diff(column, prepend=column[:1] - 1) != 0 for column in columns], axis=0)
    begins = np.flatnonzero(changes).tolist()
    return list(zip(begins, [*begins[1:], len(columns[0])], strict=True))
