"""Intervals of numbers, and arithmetic over them.

Every operation returns an interval that holds each number the operation can give for arguments from
the given intervals. Errors are no numbers, so they never widen an interval. The number NaN lies
between no ends: an interval says besides if it is possible.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field

SLACK = 2.0**-48
"""Relative error of a library function's last digits, or their difference between two calls."""


@dataclass(frozen=True)
class Interval:
    """All values from ``low`` to ``high``; an end is infinite if it is unbounded.

    With ``nan`` the number NaN is possible besides.
    """

    low: float
    high: float
    nan: bool = field(default=False, repr=False)

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    @property
    def is_point(self) -> bool:
        """True if it holds a single number."""
        return self.low == self.high

    @property
    def is_finite(self) -> bool:
        """True if both ends are finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def sign(self) -> int:
        """1 if nothing in it is negative, -1 if nothing is positive, 0 if both occur."""
        return 1 if self.low >= 0 else -1 if self.high <= 0 else 0


EVERYTHING = Interval(-math.inf, math.inf, nan=True)
NAN = Interval(math.inf, -math.inf, nan=True)
"""No number but NaN."""
FALSE = Interval(0.0, 0.0)
TRUE = Interval(1.0, 1.0)
EITHER = Interval(0.0, 1.0)
UNIT = Interval(0.0, 1.0)


def add(left: Interval, right: Interval) -> Interval:
    """Return the interval of the sums.

    >>> add(Interval(1.0, 2.0), Interval(10.0, math.inf))
    Interval(low=11.0, high=inf)
    """
    nan = _is_opposed(left.low, right.high) or _is_opposed(left.high, right.low)
    return _closed(left.low + right.low, left.high + right.high, nan or _any_nan(left, right))


def subtract(left: Interval, right: Interval) -> Interval:
    """Return the interval of the differences."""
    return add(left, negate(right))


def multiply(left: Interval, right: Interval) -> Interval:
    """Return the interval of the products."""
    # An infinite end means "unbounded", so zero times it is zero.
    products = [
        0.0 if a == 0 or b == 0 else a * b
        for a in (left.low, left.high)
        for b in (right.low, right.high)
    ]
    nan = (0.0 in left and not right.is_finite) or (0.0 in right and not left.is_finite)
    return _closed(min(products), max(products), nan or _any_nan(left, right))


def divide(left: Interval, right: Interval) -> Interval:
    """Return the interval of the quotients; unbounded if the divisor can be zero.

    >>> divide(Interval(1.0, 2.0), Interval(4.0, math.inf))
    Interval(low=0.0, high=0.5)
    """
    if 0.0 in right:
        return EVERYTHING
    quotients = [a / b for a in (left.low, left.high) for b in (right.low, right.high)]
    numbers = [each for each in quotients if not math.isnan(each)]
    nan = not (left.is_finite or right.is_finite) or _any_nan(left, right)
    return Interval(min(numbers), max(numbers), nan) if numbers else EVERYTHING


def negate(value: Interval) -> Interval:
    """Return the interval of the negated values."""
    return Interval(-value.high, -value.low, value.nan)


def union(*parts: Interval) -> Interval:
    """Return the smallest interval that holds all the given ones."""
    return Interval(
        min(each.low for each in parts), max(each.high for each in parts), _any_nan(*parts)
    )


def clip(value: Interval, limits: Interval) -> Interval:
    """Return the interval of the values clipped to limits.

    >>> clip(Interval(-5.0, 0.5), Interval(0.0, 1.0))
    Interval(low=0.0, high=0.5)
    """
    return Interval(
        min(max(value.low, limits.low), limits.high),
        max(min(value.high, limits.high), limits.low),
    )


def widen(value: Interval) -> Interval:
    """Return the interval widened by possible rounding errors; an overflow may be a finite number.

    >>> wider = widen(Interval(1.0, math.inf))
    >>> wider.low < 1.0, wider.high
    (True, inf)
    """
    low, high = min(value.low, sys.float_info.max), max(value.high, -sys.float_info.max)
    return Interval(
        low - abs(low) * SLACK if math.isfinite(low) else low,
        high + abs(high) * SLACK if math.isfinite(high) else high,
    )


# Conditions: 1 is true, 0 is false --------------------------------------------------------------


def truth(value: Interval) -> Interval:
    """Return the possible truth values of numbers: all but zero and NaN are true."""
    if 0.0 not in value:
        return EITHER if value.nan else TRUE
    return FALSE if value.is_point else EITHER


def invert(value: Interval) -> Interval:
    """Return the possible truth values of the negation."""
    return subtract(TRUE, truth(value))


def conjunction(left: Interval, right: Interval) -> Interval:
    """Return the possible truth values of ``&&``."""
    left, right = truth(left), truth(right)
    return Interval(min(left.low, right.low), min(left.high, right.high))


def disjunction(left: Interval, right: Interval) -> Interval:
    """Return the possible truth values of ``||``."""
    return invert(conjunction(invert(left), invert(right)))


def less(left: Interval, right: Interval) -> Interval:
    """Return the possible truth values of ``<``.

    >>> less(Interval(1.0, 2.0), Interval(3.0, 4.0)) == TRUE
    True
    """
    if left.high < right.low:
        return _unless_nan(left, right)
    return FALSE if left.low >= right.high else EITHER


def at_most(left: Interval, right: Interval) -> Interval:
    """Return the possible truth values of ``<=``."""
    if left.high <= right.low:
        return _unless_nan(left, right)
    return FALSE if left.low > right.high else EITHER


def equal(left: Interval, right: Interval) -> Interval:
    """Return the possible truth values of ``=``."""
    if left.high < right.low or right.high < left.low:
        return FALSE
    return _unless_nan(left, right) if left.is_point and right.is_point else EITHER


def _unless_nan(left: Interval, right: Interval) -> Interval:
    """Return the truth values of a comparison that holds for all numbers but NaN."""
    return EITHER if _any_nan(left, right) else TRUE


def _any_nan(*several: Interval) -> bool:
    return any(each.nan for each in several)


def _is_opposed(left: float, right: float) -> bool:
    return math.isinf(left) and left == -right


def _closed(low: float, high: float, nan: bool) -> Interval:
    return Interval(
        -math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high, nan
    )
