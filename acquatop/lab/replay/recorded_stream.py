"""Recorded stream as its catalog describes it, read to the end by the connector's reader."""

from __future__ import annotations

import pyarrow as pa

from acquatop.catalog.catalog import Stream


def read_recorded(stream: Stream) -> pa.Table:
    """Return all records that a stream holds now, decoded, in order. All are in memory."""
    from acquatop.runtime.sources import reader_of

    reader = reader_of(stream.connector, dict(stream.options))
    reader.prepareForTriggerAvailableNow()
    offset = reader.initialOffset()
    found = [stream.mapping.schema.empty_table()]
    while (latest := reader.latestOffset(offset, reader.getDefaultReadLimit())) != offset:
        for partition in reader.partitions(offset, latest):
            # Rows of one record are in one partition, and must be decoded together.
            rows = [batch for batch in reader.read(partition) if len(batch)]
            together = pa.Table.from_batches(rows).combine_chunks().to_batches() if rows else []
            found += [pa.Table.from_batches([stream.mapping.records(batch)]) for batch in together]
        offset = latest
    return pa.concat_tables(found)
