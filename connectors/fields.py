"""Fields of a record: where each is, what it is read as, and how a fault in it is told."""

from __future__ import annotations

import pyarrow as pa

FAULT = ""
"""The column of faults among a record's fields; no field of a mapping has an empty name."""
ROW = "."
"""The column that says at which row of its source's batch a record begins; no field of a mapping is a dot alone."""
NAMES = {
    pa.string(): "a string",
    pa.dictionary(pa.int32(), pa.string()): "a string",
    pa.int64(): "a whole number",
    pa.float64(): "a number",
}

NOT_UTF8 = "not UTF-8"


def path_of(field: str) -> tuple[str, ...]:
    """Return the names that lead to a field of a nested record.

    >>> path_of("author.name")
    ('author', 'name')
    """
    return tuple(field.split("."))


def misfit(field: str, type_: pa.DataType) -> str:
    """Say that a field is of another type than declared.

    >>> misfit("at", pa.int64())
    'the field "at" is not a whole number'
    """
    return f'the field "{field}" is not {NAMES[type_]}'
