"""Types of JSON values: the check that a value fits a column."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa


def fits(value: Any, type_: pa.DataType) -> bool:
    """Return True if a JSON value is one of a column's type: text, a double or a 64-bit integer.

    >>> fits(3, pa.float64()), fits(3.5, pa.int64()), fits(True, pa.int64()), fits("a", pa.string())
    (True, False, False, True)
    """
    if type_ == pa.string():
        # JSON's escapes can encode half a character, which no text can contain.
        return isinstance(value, str) and not any(
            "\ud800" <= character <= "\udfff" for character in value
        )
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if type_ == pa.float64():
        return abs(value) <= sys.float_info.max
    return isinstance(value, int) and -(2**63) <= value < 2**63


def refuse_constant(constant: str) -> None:
    """Raise ValueError for ``NaN`` and its like, which are no JSON."""
    raise ValueError(f"{constant} is not JSON")
