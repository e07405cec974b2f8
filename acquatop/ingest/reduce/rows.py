"""Rows of a source as JSON, for those that are kept aside."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from acquatop.ingest.place import Place
from connectors.columns import MISFIT
from connectors.contract import RecordDecoder
from connectors.row_origins import ROW_FILE, ROW_NUMBER, RowOrigins
from connectors.scalars import SCALAR, said


def is_of_statements(mapping: RecordDecoder) -> bool:
    """Return True if a record may be several lines."""
    return hasattr(mapping, "together")


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row's columns; null for a value that JSON lacks.

    >>> plain({"n": float("nan"), "user": "ann", "_misfit": None})
    {'n': None, 'user': 'ann'}
    """
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
        if name not in (MISFIT, ROW_FILE, ROW_NUMBER)
    }


def shown(rows: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows with their columns as their source has them."""
    columns = {
        name: said(column) if column.type == SCALAR else column
        for name, column in zip(rows.schema.names, rows.columns, strict=True)
    }
    return [plain(row) for row in pa.table(columns).to_pylist()]


def place_at(places: RowOrigins, row: int) -> Place:
    """Return the place of one row."""
    return Place(*(None if column is None else column[row].as_py() for column in places))
