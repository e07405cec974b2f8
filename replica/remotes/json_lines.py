"""Strict parser of JSON lines with exact numbers."""

from __future__ import annotations

import json
from decimal import Decimal


def load_line(line: bytes) -> object:
    """Return the value of a line; raises ValueError if it is not JSON.

    >>> load_line(b'{"a": 1.10}')
    {'a': Decimal('1.10')}
    """
    try:
        value: object = _DECODER.decode(line.decode("utf-8"))
    except (RecursionError, ArithmeticError) as error:
        raise ValueError("it nests too deep, or a number is beyond all measure") from error
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse)
