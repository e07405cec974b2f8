"""Parts that a job makes of a DataFrame's rows, on their way to the driver.

Where a batch of a source of Spark's own ends is Spark's decision, so what comes of it may be more
than the driver has room for. Then the parts are kept on the executors' disks, and fetched by as
many jobs of Spark as it takes. Still they are one batch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.runtime.executor_work import Work
from acquatop.runtime.frame_columns import needed_columns

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

MOST = "acquatop.mostOfPartition"
"""Name of the property with the bytes that a partition may send at once."""
MOST_OF_PIECE = 4 << 20
"""Bytes of the largest row of parts."""

_PARTITION_BITS = 32
_SCHEMA = "place long, is_last boolean, size long, data binary"
"""Pieces: their partition and number within it, whether a part ends, its bytes and these."""
_ARROW = pa.schema(
    {"place": pa.int64(), "is_last": pa.bool_(), "size": pa.int64(), "data": pa.binary()}
)

Piece = tuple[int, bool, bytes]
"""Place of a piece, whether it is the last of its part, and the bytes."""
Sending = Callable[["OnRows"], AbstractContextManager[Work]]
"""Function that makes work ready to be sent; jobs with it end within the context."""


class OnRows:
    """A stream's job for Spark's rows: Arrow batches of a partition in, pieces of its parts out.

    A piece has so many bytes at most. If all are more than Spark's local property ``MOST`` says, a
    row with their number comes instead of them.
    """

    def __init__(self, job: Job, piece: int) -> None:
        self._job = job
        self._piece = piece

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Run the job on a partition."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None, "this is called by tasks"
        names = needed_columns(self._job.mapping)
        named = (batch.rename_columns(list(names)) for batch in batches)
        first = context.partitionId() << _PARTITION_BITS
        parts: Iterable[bytes] = (part.to_bytes() for part in self._job(named))
        most = context.getLocalProperty(MOST)
        if most is not None:
            parts = list(parts)
            size = sum(map(len, parts))
            if size > int(most):
                yield _row(first, False, size, None)
                return
        for place, is_last, data in pieces(first, parts, self._piece):
            yield _row(place, is_last, len(data), data)


def _row(place: int, is_last: bool, size: int, data: bytes | None) -> pa.RecordBatch:
    columns = zip(((place,), (is_last,), (size,), (data,)), _ARROW.types, strict=True)
    return pa.RecordBatch.from_arrays(
        [pa.array(values, type_) for values, type_ in columns], schema=_ARROW
    )


def pieces(first: int, parts: Iterable[bytes], most: int) -> Iterator[Piece]:
    """Yield parts in pieces of at most so many bytes, with places from the first one on.

    >>> list(pieces(7, [b"abc", b"d"], 2))
    [(7, False, b'ab'), (8, True, b'c'), (9, True, b'd')]
    """
    for part in parts:
        for start in range(0, len(part), most):
            yield first, start + most >= len(part), part[start : start + most]
            first += 1


def joined(found: Iterable[Piece]) -> list[list[Part]]:
    """Return the parts of each partition, in the partitions' order."""
    parts: dict[int, list[Part]] = {}
    begun: list[bytes] = []
    for place, is_last, data in found:
        begun.append(data)
        if is_last:
            whole = begun[0] if len(begun) == 1 else b"".join(begun)
            parts.setdefault(place >> _PARTITION_BITS, []).append(Part.from_bytes(whole))
            begun = []
    return list(parts.values())


def runs(sizes: Sequence[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    """Yield the first and last place of runs of pieces of at most so many bytes, or of one piece.

    >>> list(runs([(0, 3), (1, 3), (5, 2), (6, 9)], 5))
    [(0, 0), (1, 5), (6, 6)]
    """
    first, last, held = 0, 0, 0
    for place, size in sizes:
        if held and held + size > most:
            yield first, last
            held = 0
        first, last, held = first if held else place, place, held + size
    if held:
        yield first, last


class FrameParts:
    """Parts of a DataFrame's batches, of which a driver has room for so many bytes at a time."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._piece = min(MOST_OF_PIECE, most)
        self._share = most
        """Bytes that each partition of the last batch that was tried could send."""
        self._was_too_much = False
        """True if the last batch's parts did not fit at once."""

    def of_batch(self, rows: DataFrame, job: Job, sent: Sending) -> list[list[Part]]:
        """Return the parts of a batch. If they do not fit, its rows are read twice.

        The first reading is without effect then. The parts of the next batch are kept at once.
        """
        if not self._was_too_much:
            with sent(OnRows(job, self._piece)) as work:
                found = self._tried(rows.mapInArrow(work, _SCHEMA))
            if found is not None:
                return joined(_in_order(found))
        parts, largest = self._kept(rows, job, sent)
        self._was_too_much = largest > self._share
        return parts

    def _tried(self, parts: DataFrame) -> list[Any] | None:
        """Return all rows of parts, or None if they are too much."""
        # Spark plans these parts once, for the number of partitions and for the job.
        self._share = self._most // max(1, parts.rdd.getNumPartitions())
        context = parts.sparkSession.sparkContext
        context.setLocalProperty(MOST, str(self._share))
        try:
            found = parts.collect()
        finally:
            context.setLocalProperty(MOST, None)  # type: ignore[arg-type]  # removes it
        return found if all(row.data is not None for row in found) else None

    def of_all(self, rows: DataFrame, job: Job, sent: Sending) -> list[list[Part]]:
        """Return the parts of a recording's rows, which are read once."""
        return self._kept(rows, job, sent)[0]

    def _kept(self, rows: DataFrame, job: Job, sent: Sending) -> tuple[list[list[Part]], int]:
        """Return parts that executors keep until they are fetched, and the most of a partition."""
        from pyspark import StorageLevel

        with sent(OnRows(job, self._piece)) as work:
            kept = rows.mapInArrow(work, _SCHEMA).persist(StorageLevel.DISK_ONLY)
            try:
                sizes = sorted((at.place, at.size) for at in kept.select("place", "size").collect())
                return joined(self._fetched(kept, sizes)), _largest(sizes)
            finally:
                kept.unpersist()

    def _fetched(self, kept: DataFrame, sizes: Sequence[tuple[int, int]]) -> Iterator[Piece]:
        for first, last in runs(sizes, self._most):
            yield from _in_order(kept.where(f"place BETWEEN {first} AND {last}").collect())


def _in_order(found: Iterable[Any]) -> Iterator[Piece]:
    for row in sorted(found, key=lambda row: row.place):
        yield row.place, row.is_last, bytes(row.data)


def _largest(sizes: Sequence[tuple[int, int]]) -> int:
    """Return the bytes of the partition with the most."""
    of_partitions: Counter[int] = Counter()
    for place, size in sizes:
        of_partitions[place >> _PARTITION_BITS] += size
    return max(of_partitions.values(), default=0)
