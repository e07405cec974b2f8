"""Arithmetic of integers and decimals as ratios of whole numbers, over whole arrays.

A ratio is a column of numerators and a scale: their denominator, one for all rows or one for each,
greater than zero, and None for 1. Numerators and scales are whole numbers in doubles, so sums,
products and quotients are exact as long as they are less than 2^53. Equal values then give equal
doubles, however they were computed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rspql.scoring.functions import BoolArray, FloatArray

Scale = FloatArray | float
Ratio = tuple[FloatArray, Scale | None]


def constant(value: Fraction) -> Ratio:
    """Return a constant as a ratio.

    >>> constant(Fraction("0.25"))
    (array(1.), 4.0)
    """
    scale = None if value.denominator == 1 else nearest(value.denominator)
    return np.asarray(nearest(value.numerator)), scale


def nearest(value: int) -> float:
    """Return the double nearest to a whole number; an infinity if it is larger than all.

    >>> nearest(-(10**400))
    -inf
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def of_decimals(numbers: FloatArray, places: int) -> Ratio:
    """Return decimals with at most so many digits after the point as ratios.

    >>> of_decimals(np.array([0.3, 1.25]), 2)
    (array([ 30., 125.]), 100.0)
    """
    scale = float(10**places)
    return np.rint(numbers * scale), scale


def taken(ratio: Ratio, at: npt.NDArray[np.int64]) -> Ratio:
    """Return a column's ratios at some positions."""
    numerators, scale = ratio
    return numerators[at], scale[at] if isinstance(scale, np.ndarray) and scale.ndim else scale


def aligned(left: Ratio, right: Ratio) -> tuple[FloatArray, FloatArray, Scale | None]:
    """Return the numerators of two ratios for a common scale.

    The scale is None if both have none, or if a scale differs from row to row.
    """
    a, b = _or_one(left[1]), _or_one(right[1])
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return left[0], right[0], None
    common = common_scale(a, b)
    return _times(left[0], common / a), _times(right[0], common / b), common


def chosen_scale(condition: BoolArray, then: Scale | None, otherwise: Scale | None) -> Scale:
    """Return the scale of values that are chosen row by row."""
    scale: FloatArray = np.where(condition, _or_one(then), _or_one(otherwise))
    return scale


def common_scale(a: float, b: float) -> float:
    """Return the least scale that both of two are parts of; infinity if it is no double."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return math.inf
    return float(math.lcm(int(a), int(b)))


def sum_of(compute: Callable[..., FloatArray]) -> Callable[[Ratio, Ratio], Ratio]:
    """Return the sum or difference of ratios."""

    def operate(left: Ratio, right: Ratio) -> Ratio:
        first, second, scale = aligned(left, right)
        if scale is not None:
            return compute(first, second), scale
        a, b = _or_one(left[1]), _or_one(right[1])
        return compute(left[0] * b, right[0] * a), a * b

    return operate


difference = sum_of(np.subtract)


def clamped(part: Ratio, whole: Ratio) -> Ratio:
    """Return the share of a part in a whole that is greater than zero, clamped to 0…1.

    >>> clamped((np.array([-1.0, 2.0, 9.0]), None), (np.asarray(32.0), 4.0))
    (array([ 0.,  8., 32.]), 32.0)
    """
    first, second, scale = aligned(part, whole)
    if scale is None:
        first, second = part[0] * _or_one(whole[1]), whole[0] * _or_one(part[1])
    positive = np.where(second > 0, second, 1.0)
    shares = np.clip(first, 0.0, positive)
    return shares, float(positive) if positive.ndim == 0 else positive


def clamped_between(low: Fraction, high: Fraction) -> Callable[[FloatArray, float | None], Ratio]:
    """Return a function that clamps ratios of one scale to two constants, as shares of 0…1.

    >>> clamped_between(Fraction(2), Fraction(10))(np.array([0.0, 45.0, 200.0]), 10.0)
    (array([ 0., 25., 80.]), 80.0)
    """

    @lru_cache(maxsize=32)
    def ends(scale: float) -> tuple[float, float, float]:
        common = math.lcm(int(scale), low.denominator, high.denominator)
        return (
            nearest(common // int(scale)),
            nearest(int(low * common)),
            nearest(int((high - low) * common)),
        )

    def clamp(numbers: FloatArray, scale: float | None) -> Ratio:
        factor, least, width = ends(1.0 if scale is None else scale)
        above = _times(numbers, factor)
        above = above if least == 0 else above - least
        return above.clip(0.0, width), width

    return clamp


def multiply(left: Ratio, right: Ratio) -> Ratio:
    """Return the product of ratios."""
    return left[0] * right[0], _or_one(left[1]) * _or_one(right[1])


def divide(left: Ratio, right: Ratio) -> Ratio:
    """Return the quotient of ratios; where the divisor is zero it means nothing."""
    divisor = right[0]
    sign = np.where(divisor < 0, -1.0, 1.0)
    numerators = left[0] * (sign * _or_one(right[1]))
    scale = np.where(divisor == 0, 1.0, np.abs(divisor)) * _or_one(left[1])
    return numerators, float(scale) if scale.ndim == 0 else scale


def sign_of(compute: Callable[..., FloatArray]) -> Callable[[Ratio], Ratio]:
    """Return a ratio with or without a change of sign."""
    return lambda value: (compute(value[0]), value[1])


def _or_one(scale: Scale | None) -> Scale:
    return 1.0 if scale is None else scale


def _times(numbers: FloatArray, factor: float) -> FloatArray:
    return numbers if factor == 1.0 else numbers * factor
