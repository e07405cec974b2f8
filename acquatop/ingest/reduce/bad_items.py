"""Bad rows of a source: found, and kept in part, where the records are decoded."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.reduce.rows import is_of_statements, place_at, shown
from acquatop.topk.contract import IntArray
from connectors.contract import RecordDecoder
from connectors.fields import ROW
from connectors.mapping import BAD
from connectors.row_origins import origins_of

ITEM = "item"
LONGEST_ITEM = 64 << 10
"""Maximum number of bytes kept of an item."""
MOST_OF_PARTITION = 1 << 20
"""Maximum number of characters kept per partition of a batch, for the driver's memory."""


def bad_items(
    rows: pa.RecordBatch, records: pa.RecordBatch, mapping: RecordDecoder
) -> pa.Table | None:
    """Return a source's bad rows as JSON, in the column ``item``; None if there are none.

    O(1) if no row is bad.
    """
    bad = records.column(BAD)
    if bad.null_count == len(bad):
        return None
    at = np.flatnonzero(pc.is_valid(bad).to_numpy(zero_copy_only=False))
    items = list(_few(_items(rows, records, mapping, at)))
    return pa.table({ITEM: pa.array(items, pa.string())})


def _few(items: Iterator[str]) -> Iterator[str]:
    room = MOST_OF_PARTITION
    for item in items:
        room -= len(item)
        if room < 0:
            return
        yield item


def _items(
    rows: pa.RecordBatch, records: pa.RecordBatch, mapping: RecordDecoder, at: IntArray
) -> Iterator[str]:
    firsts = np.asarray(records.column(ROW).to_numpy())
    ends = _ends(firsts, len(rows)) if is_of_statements(mapping) else firsts + 1
    places = origins_of(rows)
    for record in at.tolist():
        first = int(firsts[record])
        said = {"reason": records.column(BAD)[record].as_py(), **place_at(places, first)._asdict()}
        yield json.dumps(said | _content(rows, first, int(ends[record])), default=str)


def _ends(firsts: IntArray, count: int) -> IntArray:
    """Return the end of each record's rows; a record may be several rows."""
    begins = np.append(np.unique(firsts), count)
    ends: IntArray = begins[np.searchsorted(begins, firsts, side="right")]
    return ends


def _content(rows: pa.RecordBatch, first: int, end: int) -> dict[str, Any]:
    """Return an item's content: its text, its bytes if it is no text, or its columns.

    Of a long item only the beginning is kept.
    """
    if "value" not in rows.schema.names or not pa.types.is_binary(rows.schema.field("value").type):
        return {ITEM: shown(rows.slice(first, 1))[0]}
    data = b"\n".join(_bytes(rows.column("value").slice(first, end - first)))
    kept = data[:LONGEST_ITEM]
    try:
        return {"bytes": len(data), ITEM: kept.decode()}
    except UnicodeDecodeError as error:
        if error.end == len(kept) < len(data):  # the cut is within a character
            return {"bytes": len(data), ITEM: kept[: error.start].decode()}
        return {"bytes": len(data), "base64": base64.b64encode(kept).decode()}


def _bytes(lines: pa.BinaryArray) -> Sequence[bytes]:
    return [line or b"" for line in lines.to_pylist()]
