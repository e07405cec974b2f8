"""Where the rows of a source stand, and when they came: the columns in which sources say so."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

FILE, POSITION = "file", "position"
"""Of rows that are bytes: the file they stand in, and where; a stream that is no file has but positions."""
ROW_FILE, ROW_NUMBER = "_file", "_row"
"""Of rows in columns, which may have such names themselves."""
ARRIVED = "received"
"""When a row came: a timestamp."""


class Places(NamedTuple):
    """Where each row stands; nothing where its source does not say."""

    files: pa.Array | None
    positions: pa.Array | None


def places_of(rows: pa.RecordBatch) -> Places:
    """Return where rows stand.

    >>> places_of(pa.record_batch([pa.array([7])], ["position"])).positions.to_pylist()
    [7]
    """
    names = rows.schema.names
    file, position = (ROW_FILE, ROW_NUMBER) if ROW_NUMBER in names else (FILE, POSITION)
    return Places(*(rows.column(name) if name in names else None for name in (file, position)))
