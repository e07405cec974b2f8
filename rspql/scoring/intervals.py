"""Intervals of numbers, and arithmetic over them.

Every operation returns an interval that holds each number the operation can give for arguments from
the given intervals. Errors (NaN) are not numbers, so they never widen an interval.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

SLACK = 2.0**-48
"""Relative error of a library function's last digits, or their difference between two calls."""


@dataclass(frozen=True)
class Interval:
    """All values from ``low`` to ``high``; an end is infinite if it is unbounded."""

    low: float
    high: float

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


EVERYTHING = Interval(-math.inf, math.inf)
FALSE = Interval(0.0, 0.0)
TRUE = Interval(1.0, 1.0)
EITHER = Interval(0.0, 1.0)


def add(left: Interval, right: Interval) -> Interval:
    """Return the interval of the sums.

    >>> add(Interval(1.0, 2.0), Interval(10.0, math.inf))
    Interval(low=11.0, high=inf)
    """
    return _closed(left.low + right.low, left.high + right.high)


def subtract(left: Interval, right: Interval) -> Interval:
    """Return the interval of the differences."""
    return _closed(left.low - right.high, left.high - right.low)


def multiply(left: Interval, right: Interval) -> Interval:
    """Return the interval of the products."""
    # An infinite end means "unbounded", so zero times it is zero.
    products = [
        0.0 if a == 0 or b == 0 else a * b
        for a in (left.low, left.high)
        for b in (right.low, right.high)
    ]
    return _closed(min(products), max(products))


def divide(left: Interval, right: Interval) -> Interval:
    """Return the interval of the quotients; unbounded if the divisor can be zero.

    >>> divide(Interval(1.0, 2.0), Interval(4.0, math.inf))
    Interval(low=0.0, high=0.5)
    """
    if 0.0 in right:
        return EVERYTHING
    quotients = [a / b for a in (left.low, left.high) for b in (right.low, right.high)]
    numbers = [each for each in quotients if not math.isnan(each)]
    return Interval(min(numbers), max(numbers)) if numbers else EVERYTHING


def negate(value: Interval) -> Interval:
    """Return the interval of the negated values."""
    return Interval(-value.high, -value.low)


def union(*parts: Interval) -> Interval:
    """Return the smallest interval that holds all the given ones."""
    return Interval(min(each.low for each in parts), max(each.high for each in parts))


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
    """Return the possible truth values of numbers: all but zero are true."""
    if 0.0 not in value:
        return TRUE
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
        return TRUE
    return FALSE if left.low >= right.high else EITHER


def at_most(left: Interval, right: Interval) -> Interval:
    """Return the possible truth values of ``<=``."""
    return invert(less(right, left))


def equal(left: Interval, right: Interval) -> Interval:
    """Return the possible truth values of ``=``."""
    if left.high < right.low or right.high < left.low:
        return FALSE
    return TRUE if left.is_point and right.is_point else EITHER


def _closed(low: float, high: float) -> Interval:
    return Interval(-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)
