"""One line of JSON as a value: exact numbers, and nothing that JSON does not have."""

from __future__ import annotations

import json
from decimal import Decimal


def load_line(line: bytes) -> object:
    """Return what a line says; ValueError when it is not JSON.

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
