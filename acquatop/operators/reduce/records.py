"""The records themselves: of queries that look at whole windows nothing can be left out."""

from __future__ import annotations

import pyarrow as pa

from acquatop.operators.match import Found
from connectors.fields import ROW


class Records:
    """Hands on what was decoded."""

    matcher = None
    windows = None

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the records, without where they stood."""
        return pa.Table.from_batches([records]).drop_columns([ROW])
