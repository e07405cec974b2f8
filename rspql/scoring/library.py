"""Library of functions that every score may call."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import reduce
from types import MappingProxyType
from typing import Any

import numpy as np

from rspql import ast
from rspql.scoring.datatypes import DECIMAL, INTEGER, literal_value
from rspql.scoring.functions import (
    BoolArray,
    FloatArray,
    FunctionRegistry,
    Mask,
    ResultType,
    ScoringFunction,
    corner_bounds,
)
from rspql.scoring.intervals import EVERYTHING, UNIT, Interval, clip, widen

MATH = "http://www.w3.org/2005/xpath-functions/math#"
"""Namespace of XPath's mathematical functions, by which SPARQL engines may know them."""

_NOT_NEGATIVE = Interval(0.0, np.inf)


class _OfLibrary(ScoringFunction):
    """Function of the library, pickled by its name.

    Scores are sent with every job. By value, functions would be most of its bytes and its work.
    """

    def __reduce__(self) -> tuple[Callable[..., ScoringFunction], tuple[Any, ...]]:
        """Return the pickled form; one that has been changed is not the library's any more."""
        name = next((name for name, function in FUNCTIONS.items() if function is self), None)
        if name is None:
            return ScoringFunction, tuple(getattr(self, each.name) for each in fields(self))
        return _named, (name,)


def _named(name: str) -> ScoringFunction:
    return FUNCTIONS[name]


def _rising(*intervals: Interval) -> tuple[int, ...]:
    return (1,) * len(intervals)


def _always(*_intervals: Interval) -> bool:
    return True


def _not_negative(first: Interval, *_others: Interval) -> bool:
    return first.low >= 0


# norm ----------------------------------------------------------------------------------------


def _norm(value: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    with np.errstate(all="ignore"):
        scaled = np.clip((value - low) / (high - low), 0.0, 1.0)
        if not np.isfinite(low).all() or not np.isfinite(high).all():
            # Infinity over infinity, where the comparisons that clamp decide.
            scaled = np.where(value <= low, 0.0, np.where(value >= high, 1.0, scaled))
    is_range = high > low
    return scaled if is_range.all() else np.where(is_range, scaled, np.nan)


def _norm_fails(_result: FloatArray, _value: FloatArray, low: FloatArray, high: FloatArray) -> Mask:
    fails = ~(high > low)
    return fails if fails.any() else False


def _norm_floating(values: Sequence[FloatArray], floating: Sequence[Mask]) -> Mask:
    # Where it clamps, the value is a decimal 0 or 1.
    value, low, high = values
    return reduce(np.logical_or, floating) & ~((value <= low) | (value >= high))


def _norm_bounds(value: Interval, low: Interval, high: Interval) -> Interval:
    if not (low.is_point and high.is_point and high.low > low.low):
        return UNIT
    ends = _norm(np.array([value.low, value.high]), np.array(low.low), np.array(high.low))
    least, most = (
        default if np.isnan(end) else float(end)
        for end, default in zip(ends, (0.0, 1.0), strict=True)
    )
    return Interval(least, most)


def _norm_directions(*_intervals: Interval) -> tuple[int, ...]:
    # Inside the range, raising either end makes the share smaller; outside it the share is 0 or 1.
    return (1, -1, -1)


def _norm_total(_value: Interval, low: Interval, high: Interval) -> bool:
    return (
        low.is_finite
        and high.is_finite
        and high.low > low.high
        and bool(np.isfinite(high.high - low.low))
    )


def _norm_in_sparql(
    value: ast.Expression, low: ast.Expression, high: ast.Expression
) -> ast.Expression:
    share = ast.Binary("/", ast.Binary("-", value, low), ast.Binary("-", high, low))
    below = ast.Call("if", (ast.Binary(">=", value, high), _decimal("1.0"), share))
    clamped = ast.Call("if", (ast.Binary("<=", value, low), _decimal("0.0"), below))
    if _constant(low) < _constant(high):
        return clamped
    return ast.Call("if", (ast.Binary(">", high, low), clamped, division_by_zero()))


def _constant(expression: ast.Expression) -> float:
    """Return a numeric literal's value, NaN for any other expression."""
    return literal_value(expression) if isinstance(expression, ast.Literal) else math.nan


def _decimal(lexical: str) -> ast.Literal:
    return ast.Literal(lexical, DECIMAL)


def division_by_zero() -> ast.Expression:
    """Return an expression that is an error in every SPARQL engine: its numbers are integers."""
    return ast.Binary("/", ast.Literal("1", INTEGER), ast.Literal("0", INTEGER))


# Rounding and absolute values ----------------------------------------------------------------


def _abs_bounds(value: Interval) -> Interval:
    ends = sorted((abs(value.low), abs(value.high)))
    return Interval(0.0 if 0.0 in value else ends[0], ends[1])


def _round(value: FloatArray) -> FloatArray:
    # Halves round up, -0.5 to -0: numpy's own rounding takes halves to even numbers.
    with np.errstate(all="ignore"):
        below = np.floor(value)
        return np.copysign(np.where(value - below >= 0.5, below + 1.0, below), value)


def _exactly(apply: Callable[[FloatArray], FloatArray]) -> Callable[[Interval], Interval]:
    """Return the bounds of a function that never falls and has no rounding errors."""
    return lambda value: Interval(
        float(apply(np.array(value.low))), float(apply(np.array(value.high)))
    )


def _step(name: str, apply: Callable[[FloatArray], FloatArray]) -> ScoringFunction:
    return _OfLibrary(
        1,
        apply,
        _exactly(apply),
        f"{name}(value)",
        _rising,
        total=_always,
        result=ResultType.ARGUMENT,
        sparql=name,
        fails=_never,
    )


# The least and the greatest ------------------------------------------------------------------


def _never(_result: FloatArray, *_values: FloatArray) -> Mask:
    return False


def _floating_by(
    is_chosen: Callable[[FloatArray, FloatArray], BoolArray],
) -> Callable[[Sequence[FloatArray], Sequence[Mask]], Mask]:
    """Return the types of chosen arguments: of equal ones the first is chosen, NaN before all."""

    def floating(values: Sequence[FloatArray], masks: Sequence[Mask]) -> Mask:
        chosen, mask = values[0], masks[0]
        for value, of_value in zip(values[1:], masks[1:], strict=True):
            keeps = is_chosen(chosen, value) | np.isnan(chosen)
            chosen, mask = np.where(keeps, chosen, value), np.where(keeps, mask, of_value)
        return mask

    return floating


def _least(*values: FloatArray) -> FloatArray:
    return reduce(np.minimum, values)


def _greatest(*values: FloatArray) -> FloatArray:
    return reduce(np.maximum, values)


def _least_bounds(*values: Interval) -> Interval:
    return Interval(min(each.low for each in values), min(each.high for each in values))


def _greatest_bounds(*values: Interval) -> Interval:
    return Interval(max(each.low for each in values), max(each.high for each in values))


def _first_by(operator: str) -> Callable[..., ast.Expression]:
    def expand(*values: ast.Expression) -> ast.Expression:
        # An error or a NaN among the values is one of their sum. NaN alone differs from itself.
        chosen = values[-1]
        for at in range(len(values) - 2, -1, -1):
            before = [ast.Binary(operator, values[at], other) for other in values[at + 1 :]]
            chosen = ast.Call(
                "if", (reduce(lambda a, b: ast.Binary("&&", a, b), before), values[at], chosen)
            )
        if len(values) == 1:
            return chosen
        kept = reduce(
            lambda a, b: ast.Binary("&&", a, b),
            (ast.Binary("=", value, value) for value in values),
        )
        sum_of_all = reduce(lambda a, b: ast.Binary("+", a, b), values)
        return ast.Call("if", (kept, chosen, sum_of_all))

    return expand


# Powers and logarithms -----------------------------------------------------------------------


def _quietly(apply: Callable[..., FloatArray]) -> Callable[..., FloatArray]:
    def quiet(*values: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return apply(*values)

    return quiet


def _pow(base: FloatArray, exponent: FloatArray) -> FloatArray:
    missing = np.isnan(base) | np.isnan(
        exponent
    )  # numpy gives 1 for anything to the power 0, and for 1 to any power
    with np.errstate(all="ignore"):
        return np.where(missing, np.nan, np.power(base + 0.0, exponent))  # + 0.0 turns -0 into 0


def _pow_directions(base: Interval, exponent: Interval) -> tuple[int, ...]:
    in_exponent = 1 if base.low >= 1 else -1 if base.low >= 0 and base.high <= 1 else 0
    return _pow_direction_in_base(base, exponent), in_exponent


def _pow_direction_in_base(base: Interval, exponent: Interval) -> int:
    if base.low >= 0:
        return exponent.sign
    if not _is_natural(exponent):
        return 0
    return 1 if exponent.low % 2 else base.sign


def _is_natural(exponent: Interval) -> bool:
    return (
        exponent.is_point
        and exponent.is_finite
        and exponent.low > 0
        and exponent.low == int(exponent.low)
    )


def _pow_bounds(base: Interval, exponent: Interval) -> Interval:
    if base.low >= 0:
        # Monotone in each argument whatever the other is, so the extremes are in the corners.
        corners = [(x, y) for x in (base.low, base.high) for y in (exponent.low, exponent.high)]
        powers = [float(_pow(np.array(x), np.array(y))) for x, y in corners]
        return clip(widen(Interval(min(powers), max(powers))), _NOT_NEGATIVE)
    if not _is_natural(exponent):
        return EVERYTHING
    odd = exponent.low % 2 == 1
    return corner_bounds(_pow, (1, 0), (base if odd else _abs_bounds(base), exponent), EVERYTHING)


def _sqrt_bounds(value: Interval) -> Interval:
    return _exactly(np.sqrt)(clip(value, _NOT_NEGATIVE))


def _log_bounds(value: Interval) -> Interval:
    with np.errstate(all="ignore"):
        return widen(_exactly(np.log)(clip(value, _NOT_NEGATIVE)))


def _exp_bounds(value: Interval) -> Interval:
    with np.errstate(all="ignore"):
        return clip(widen(_exactly(np.exp)(value)), _NOT_NEGATIVE)


FUNCTIONS: Mapping[str, ScoringFunction] = MappingProxyType(
    {
        "norm": _OfLibrary(
            3,
            _norm,
            _norm_bounds,
            "norm(value, low, high)",
            _norm_directions,
            total=_norm_total,
            result=ResultType.QUOTIENT,
            expand=_norm_in_sparql,
            fails=_norm_fails,
            floating=_norm_floating,
        ),
        "abs": _OfLibrary(
            1,
            np.abs,
            _abs_bounds,
            "ABS(value)",
            lambda value: (value.sign,),
            total=_always,
            result=ResultType.ARGUMENT,
            sparql="ABS",
            fails=_never,
            exactly=np.abs,
        ),
        "ceil": _step("CEIL", np.ceil),
        "floor": _step("FLOOR", np.floor),
        "round": _step("ROUND", _round),
        "least": _OfLibrary(
            1,
            _least,
            _least_bounds,
            "least(value, …)",
            _rising,
            variadic=True,
            total=_always,
            result=ResultType.ARGUMENT,
            expand=_first_by("<="),
            fails=_never,
            floating=_floating_by(np.less_equal),
        ),
        "greatest": _OfLibrary(
            1,
            _greatest,
            _greatest_bounds,
            "greatest(value, …)",
            _rising,
            variadic=True,
            total=_always,
            result=ResultType.ARGUMENT,
            expand=_first_by(">="),
            fails=_never,
            floating=_floating_by(np.greater_equal),
        ),
        "sqrt": _OfLibrary(
            1,
            _quietly(np.sqrt),
            _sqrt_bounds,
            "sqrt(value)",
            _rising,
            total=_not_negative,
            sparql=MATH + "sqrt",
        ),
        "log": _OfLibrary(
            1,
            _quietly(np.log),
            _log_bounds,
            "log(value)",
            _rising,
            total=_not_negative,
            sparql=MATH + "log",
        ),
        "exp": _OfLibrary(
            1,
            _quietly(np.exp),
            _exp_bounds,
            "exp(value)",
            _rising,
            total=_always,
            sparql=MATH + "exp",
        ),
        "pow": _OfLibrary(
            2,
            _pow,
            _pow_bounds,
            "pow(base, exponent)",
            _pow_directions,
            total=_not_negative,
            sparql=MATH + "pow",
        ),
    }
)
"""Built-in functions by name, in lower case."""

DEFAULT_FUNCTIONS = FunctionRegistry(
    {**FUNCTIONS, **{MATH + name: FUNCTIONS[name] for name in ("sqrt", "log", "exp", "pow")}}
)
"""Built-in functions by name and, if they have one, by XPath's IRI."""
