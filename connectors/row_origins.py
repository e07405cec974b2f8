"""RowOrigins of a source's rows and their arrival times: the columns in which sources give them."""

from __future__ import annotations

from typing import NamedTuple

import pyarrow as pa

FILE, POSITION = "file", "position"
"""Columns of rows that are bytes: the file and the position in it.

A stream that is not a file has only positions.
"""
ROW_FILE, ROW_NUMBER = "_file", "_row"
"""The same columns of rows in columns, which may use the plain names themselves."""
ARRIVED = "received"
"""Column of a row's arrival: a timestamp."""


class RowOrigins(NamedTuple):
    """RowOrigins of rows; None for a part that their source does not give."""

    files: pa.Array | None
    positions: pa.Array | None


def origins_of(rows: pa.RecordBatch) -> RowOrigins:
    """Return the places of rows.

    >>> origins_of(pa.record_batch([pa.array([7])], ["position"])).positions.to_pylist()
    [7]
    """
    names = rows.schema.names
    file, position = (ROW_FILE, ROW_NUMBER) if ROW_NUMBER in names else (FILE, POSITION)
    return RowOrigins(*(rows.column(name) if name in names else None for name in (file, position)))
