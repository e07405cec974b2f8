"""Rows of a source as JSON, for those that are kept aside."""

from __future__ import annotations

import math
from typing import Any

from acquatop.ingest.place import Place
from connectors.columns import MISFIT
from connectors.contract import RecordDecoder
from connectors.row_origins import ROW_FILE, ROW_NUMBER, RowOrigins


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


def place_at(places: RowOrigins, row: int) -> Place:
    """Return the place of one row."""
    return Place(*(None if column is None else column[row].as_py() for column in places))
