"""Fields of a record: their paths, their types, and the messages for faults in them."""

from __future__ import annotations

import pyarrow as pa

from connectors.scalars import SCALAR

FAULT = ""
"""Column of faults among a record's fields; no field of a mapping has an empty name."""
ROW = "."
"""Column with the index of a record's first row in its source's batch.

No field of a mapping is a dot alone.
"""
NAMES = {
    pa.string(): "a string",
    pa.dictionary(pa.int32(), pa.string()): "a string",
    pa.int64(): "a whole number",
    pa.float64(): "a number",
    pa.bool_(): "true or false",
    SCALAR: "a single value",
}

NOT_UTF8 = "not UTF-8"


def path_of(field: str) -> tuple[str, ...]:
    """Return the names that lead to a field of a nested record.

    >>> path_of("author.name")
    ('author', 'name')
    """
    return tuple(field.split("."))


def misfit(field: str, type_: pa.DataType) -> str:
    """Return the message for a field that does not have the declared type.

    >>> misfit("at", pa.int64())
    'the field "at" is not a whole number'
    """
    return f'the field "{field}" is not {NAMES[type_]}'
