"""Aggregates per pane and key that stay where they are made; only their places are sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.match import KEY, Found, Matcher
from acquatop.ingest.reduce.pane_partials import PanePartials
from acquatop.ingest.reduce.partial_columns import COUNT, FIRST, LAST
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows

FILE, START, BUCKETS = "file", "start", "buckets"
_HASH = IdentityHash(bytes(16))
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


def buckets_of(keys: pa.Array, count: int) -> IntArray:
    """Return the bucket of each key; it is the same in every process.

    >>> buckets_of(pa.array(["a", "b", "a"]), 1).tolist()
    [0, 0, 0]
    """
    heads, _ = _HASH.of(keys)
    return (heads.view(np.uint64) % np.uint64(count)).astype(np.int64)


class BucketPartials:
    """Reducer that writes the partials of ``PanePartials`` to files, a chunk per pane and bucket.

    A partition is written into one file. The table returned has a row for each pane: O(panes),
    whatever the number of keys.
    """

    def __init__(
        self,
        matcher: Matcher,
        windows: Windows,
        columns: AggregateColumns,
        buckets: int,
        folder: ChunkFolder,
    ) -> None:
        self.matcher = matcher
        self.windows = windows
        self._partials = PanePartials(matcher, windows, columns)
        self._buckets = buckets
        self._folder = folder

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the places of each pane's partials, and the number of events in them."""
        table = self._partials.reduce(records, found)
        if found is None or not len(table):
            return _SCHEMA.empty_table()
        keys = table.column(KEY).combine_chunks()
        codes = np.asarray(keys.indices.to_numpy(), dtype=np.int64)
        buckets = buckets_of(keys.dictionary, self._buckets)[codes]
        firsts, lasts = (np.asarray(table.column(name).to_numpy()) for name in (FIRST, LAST))
        order = np.lexsort((buckets, lasts, firsts))
        firsts, lasts, buckets = firsts[order], lasts[order], buckets[order]
        chunks = list(cut(with_plain_keys(table.take(pa.array(order))), firsts, lasts, buckets))
        # Partitions with equal sums get different files: no two have a record in common, nor its
        # subject.
        name = self._folder.write([chunk for _, chunk in chunks], str(found.subjects[0]).encode())
        counts = np.asarray(table.column(COUNT).to_numpy())[order]
        return _told(name, firsts, lasts, buckets, counts)


def with_plain_keys(table: pa.Table) -> pa.Table:
    """Return a table whose keys are text: files cannot have a dictionary for each chunk."""
    at = table.schema.get_field_index(KEY)
    return table.set_column(at, KEY, table.column(KEY).cast(pa.string()))


def cut(
    table: pa.Table, firsts: IntArray, lasts: IntArray, buckets: IntArray
) -> Iterator[tuple[tuple[int, int, int], pa.RecordBatch]]:
    """Yield the chunks of sorted rows, each with its pane and bucket."""
    (rows,) = table.combine_chunks().to_batches()
    for start, stop in _runs(firsts, lasts, buckets):
        yield (
            (int(firsts[start]), int(lasts[start]), int(buckets[start])),
            rows.slice(start, stop - start),
        )


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
