"""Texts of numbers as numbers: whole ones that 64 bits hold, and finite doubles."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_SURE_DIGITS = 18
"""Number of digits that certainly fit into a 64-bit integer."""


def whole_numbers(texts: pa.StringArray) -> pa.Int64Array:
    """Return bare texts as integers, null if a text is not one or does not fit into 64 bits.

    >>> whole_numbers(pa.array(["+7", "7.0"])).to_pylist()
    [7, None]
    """
    return whole(pc.if_else(pc.match_substring_regex(texts, "^[+-]?[0-9]+$"), texts, None))


def finite_numbers(texts: pa.StringArray) -> pa.DoubleArray:
    """Return bare texts as numbers, null if a text is not one or does not fit into a double.

    >>> finite_numbers(pa.array(["+7", "1e3", ".5", "nan", "1e999"])).to_pylist()
    [7.0, 1000.0, 0.5, None, None]
    """
    written = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$"
    return finite(pc.if_else(pc.match_substring_regex(texts, written), texts, None))


def finite(texts: pa.StringArray) -> pa.DoubleArray:
    """Return texts of numbers as doubles, null for infinite ones."""
    if pc.any(pc.starts_with(texts, "+")).as_py():
        texts = pc.utf8_ltrim(texts, "+")
    values = pc.cast(texts, pa.float64())
    return pc.if_else(pc.is_finite(values), values, None)


def whole(texts: pa.StringArray) -> pa.Int64Array:
    """Return texts of digits as integers, null if 64 bits cannot hold them."""
    longest = pc.max(pc.binary_length(texts)).as_py() or 0
    if longest <= _SURE_DIGITS and not pc.any(pc.starts_with(texts, "+")).as_py():
        return pc.cast(texts, pa.int64())
    numbers = [None if each is None else _whole_number(each) for each in texts.to_pylist()]
    return pa.array(numbers, pa.int64())


def _whole_number(text: str) -> int | None:
    sign, digits = text[:1] if text[:1] in "+-" else "", text.lstrip("+-").lstrip("0") or "0"
    # Python refuses to convert numbers of thousands of digits.
    number = int(sign + digits) if len(digits) <= _SURE_DIGITS + 1 else 2**63
    return number if -(2**63) <= number < 2**63 else None
