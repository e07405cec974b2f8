"""Reducer that keeps whole records: queries over whole windows need all of them."""

from __future__ import annotations

import pyarrow as pa

from acquatop.ingest.found import Found
from connectors.fields import ROW
from connectors.subjects import written


class Records:
    """Reducer that passes on decoded records."""

    matcher = None
    windows = None

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the records, without their row numbers if they still have them."""
        table = pa.Table.from_batches([written(records)])
        return table.drop_columns([ROW]) if ROW in table.column_names else table


RECORDS = Records()
"""The same reducer for all queries, so that records are passed on once."""
