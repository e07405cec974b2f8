"""Sample of a stream in files: the times and faults of its first records, without a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from acquatop.catalog.catalog import Stream
from acquatop.runtime.sources import reader_of
from connectors.divisible import step
from connectors.mapping import TIME, count_faults
from connectors.registry import FILES, LINES, PARQUET

SAMPLE_BYTES, SAMPLE_ROWS = 1 << 16, 1_000
"""Size of a sample."""
_IN_FILES = frozenset({LINES.name, PARQUET.name, FILES.name})


@dataclass(frozen=True)
class Sample:
    """Number of items, the bad ones by reason, and the newest time of the others."""

    items: int
    bad: Mapping[str, int]
    newest_ms: int | None


def sample_of(stream: Stream) -> Sample | None:
    """Return a sample of a stream; None if it is not in files, or they cannot be read."""
    if stream.connector not in _IN_FILES:
        return None
    try:
        return _read(stream)
    except (OSError, ValueError, pa.ArrowException):
        return None


def _read(stream: Stream) -> Sample | None:
    reader = reader_of(stream.connector, dict(stream.options))
    limit = step(reader).limit(SAMPLE_ROWS if step(reader).counts_rows else SAMPLE_BYTES)
    start = reader.initialOffset()
    end = reader.latestOffset(start, limit)
    records = [
        stream.mapping.records(rows)
        for part in reader.partitions(start, end)
        for rows in reader.read(part)
    ]
    if not records:
        return None
    newest = [pc.max(batch.column(TIME)).as_py() for batch in records]
    return Sample(
        sum(map(len, records)),
        count_faults(records),
        max((time_ms for time_ms in newest if time_ms is not None), default=None),
    )
