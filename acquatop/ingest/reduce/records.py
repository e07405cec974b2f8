"""The records themselves: of queries that look at whole windows nothing can be left out."""

from __future__ import annotations

import pyarrow as pa

from acquatop.ingest.match import Found
from connectors.fields import ROW


class Records:
    """Hands on what was decoded."""

    matcher = None
    windows = None

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the records, without where they stood if they say that still."""
        table = pa.Table.from_batches([records])
        return table.drop_columns([ROW]) if ROW in table.column_names else table
