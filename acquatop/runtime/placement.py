"""Place of a batch's work: the driver reads small batches itself, without a job of Spark.

A job on one partition takes longer than reading a few thousand records. The work is the same code,
with the same results, in both places.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from connectors.divisible import Divisible, step

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

    from acquatop.ingest.reduce.job import Job

MOST_BYTES, MOST_ROWS = 256 << 10, 1 << 13
"""Size of a batch up to which the driver reads it."""


def is_small(reader: Any, start: Any, stop: Any) -> bool:
    """Return True if the records between two offsets are few enough for the driver."""
    if not isinstance(reader, Divisible):
        return False
    most = MOST_ROWS if step(reader).counts_rows else MOST_BYTES
    return reader.size(start, stop) <= most


def sent_by(
    reader: Any, partitions: Iterable[InputPartition], job: Job, most: int | None
) -> Iterator[list[bytes] | int]:
    """Yield the parts of each partition as bytes; if these are more than ``most``, their number."""
    for partition in partitions:
        parts = [part.to_bytes() for part in job(reader.read(partition))]
        size = sum(map(len, parts))
        yield parts if most is None or size <= most else size
