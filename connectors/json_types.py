"""Types of JSON values: the check that a value fits a column."""

from __future__ import annotations

import sys
from typing import Any

import pyarrow as pa

from connectors.scalars import BOOLEAN, NUMBER, TEXT


class Written(float):
    """A number of JSON with the text that it is written with.

    >>> float(Written("0.10")), Written("0.10").text
    (0.1, '0.10')
    """

    def __init__(self, text: str) -> None:
        self.text = text


def scalar(value: Any) -> str:
    """Return a JSON value as a scalar (:mod:`connectors.scalars`); TypeError for a nested one.

    >>> scalar("a"), scalar(True), scalar(Written("1.50"))
    ('ta', 'btrue', 'n1.50')
    """
    if isinstance(value, bool):
        return BOOLEAN + str(value).lower()
    if isinstance(value, str):
        if not fits(value, pa.string()):
            raise TypeError(value)
        return TEXT + value
    if isinstance(value, Written):
        return NUMBER + value.text
    if isinstance(value, int):
        try:
            return NUMBER + str(value)
        except ValueError as error:  # more digits than Python converts
            raise TypeError(value) from error
    raise TypeError(value)


def fits(value: Any, type_: pa.DataType) -> bool:
    """Return True if a JSON value has a column's type: text, truth value, double, 64-bit integer.

    >>> fits(3, pa.float64()), fits(3.5, pa.int64()), fits(True, pa.int64()), fits("a", pa.string())
    (True, False, False, True)
    """
    if type_ == pa.string():
        # JSON's escapes can encode half a character, which no text can contain.
        return isinstance(value, str) and not any(
            "\ud800" <= character <= "\udfff" for character in value
        )
    if type_ == pa.bool_():
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if type_ == pa.float64():
        return abs(value) <= sys.float_info.max
    return isinstance(value, int) and -(2**63) <= value < 2**63


def refuse_constant(constant: str) -> None:
    """Raise ValueError for ``NaN`` and its like, which are no JSON."""
    raise ValueError(f"{constant} is not JSON")
