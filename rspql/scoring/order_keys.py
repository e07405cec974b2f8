"""Keys that put numbers in their order, however many digits they have: a double, then a text."""

from __future__ import annotations

import math
from fractions import Fraction

from rspql.scoring.exact import Number

_BITS = 256
_DIGITS = _BITS // 4
NO_REST = f"{1 << (_BITS - 1):0{_DIGITS}x}"
"""Rest of a number that is a double."""


def nearest_double(number: Number) -> float:
    """Return the double nearest to a number; infinity if it is out of range.

    >>> nearest_double(Number(Fraction(2**53 + 1), "integer")) == 2.0**53
    True
    """
    try:
        return float(number.value)
    except OverflowError:
        return math.copysign(math.inf, number.value)


def rest_of(number: Number) -> str:
    """Return a text for the digits that the nearest double lacks: greater texts for greater rests.

    It orders numbers of one nearest double by their next 255 bits.

    >>> large = [Number(Fraction(2**60 + more), "integer") for more in (-1, 0, 1)]
    >>> rests = [rest_of(number) for number in large]
    >>> rests == sorted(set(rests)) and rests[1] == NO_REST
    True
    """
    double = nearest_double(number)
    if isinstance(number.value, float) or not math.isfinite(double):
        return NO_REST
    # It lies between -1 and 1 units of the last place.
    rest = (number.value - Fraction(double)) / Fraction(math.ulp(double))
    return f"{math.floor((rest + 1) * (1 << (_BITS - 1))):0{_DIGITS}x}"
