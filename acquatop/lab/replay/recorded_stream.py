"""A recorded stream as its catalog describes it: read by the connector's own reader, from beginning to end."""

from __future__ import annotations

import pyarrow as pa

from acquatop.catalog.catalog import Stream


def read_recorded(stream: Stream) -> pa.Table:
    """Return all records that a stream holds now, decoded, in their order. All of it is in memory."""
    from acquatop.runtime.sources import reader_of

    reader = reader_of(stream.connector, dict(stream.options))
    reader.prepareForTriggerAvailableNow()
    offset = reader.initialOffset()
    found = [stream.mapping.schema.empty_table()]
    while (latest := reader.latestOffset(offset, reader.getDefaultReadLimit())) != offset:
        for partition in reader.partitions(offset, latest):
            # Rows that belong to one record are in one partition, and have to be decoded together.
            rows = [batch for batch in reader.read(partition) if len(batch)]
            together = pa.Table.from_batches(rows).combine_chunks().to_batches() if rows else []
            found += [pa.Table.from_batches([stream.mapping.records(batch)]) for batch in together]
        offset = latest
    return pa.concat_tables(found)
