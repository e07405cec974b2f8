"""Bounds of a score: interval arithmetic over a scoring expression.

With bounds, an answer can be proved exact before every value is known: for any values within the
given intervals, the score lies within the returned one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import reduce

from rspql import ast
from rspql.scoring.datatypes import constant_value
from rspql.scoring.fold import fold
from rspql.scoring.functions import FunctionRegistry
from rspql.scoring.intervals import (
    EITHER,
    EVERYTHING,
    FALSE,
    NAN,
    UNIT,
    Interval,
    add,
    at_most,
    clip,
    conjunction,
    disjunction,
    divide,
    equal,
    invert,
    less,
    multiply,
    negate,
    subtract,
    truth,
    union,
    widen,
)
from rspql.scoring.kinds import needs_ratios
from rspql.scoring.library import DEFAULT_FUNCTIONS

_UNIT, _LARGEST = 2.0**10, 2.0**16


def bounds(
    expression: ast.Expression,
    variables: Mapping[str, Interval],
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
) -> Interval:
    """Return an interval that holds every possible score; variables not named may have any value.

    The interval is sound, not always tight: a variable that occurs twice is treated as two. The
    interval of a condition holds 1 if it can be true and 0 if it can be false.

    >>> score = ast.Binary("-", ast.Literal("10", ast.XSD + "integer"), ast.Variable("x"))
    >>> bounds(score, {"x": Interval(1.0, 4.0)})
    Interval(low=6.0, high=9.0)
    """
    has_ratios = needs_ratios(expression, functions, {})

    def step(node: ast.Expression, parts: tuple[Interval, ...]) -> Interval:
        found = interval_of(node, parts, variables, functions)
        # The nearest double of a decimal differs from one computed in doubles.
        if has_ratios and _can_differ(node) and not all(map(_is_binary, (*parts, found))):
            return _widened(node, found)
        return found

    found = fold(expression, step)
    # NaN is no score.
    return Interval(found.low, found.high)


def _can_differ(node: ast.Expression) -> bool:
    match node:
        case ast.Variable() | ast.Literal() | ast.Binary("+" | "-" | "*" | "/") | ast.Call("norm"):
            return True
        case _:
            return False


def _is_binary(value: Interval) -> bool:
    """Return True if both ends are small and have few binary digits: nothing rounds them."""
    return all(
        math.isinf(end) or (abs(end) < _LARGEST and (end * _UNIT).is_integer())
        for end in (value.low, value.high)
    )


def _widened(node: ast.Expression, found: Interval) -> Interval:
    wider = widen(found)
    if isinstance(node, ast.Call):
        wider = clip(wider, UNIT)
    return Interval(wider.low, wider.high, found.nan)


def interval_of(
    node: ast.Expression,
    parts: tuple[Interval, ...],
    variables: Mapping[str, Interval],
    functions: FunctionRegistry,
) -> Interval:
    """Return the interval of a node's value, given those of its operands."""
    match node:
        case ast.Variable(name):
            return variables.get(name, EVERYTHING)
        case ast.Literal():
            constant = constant_value(node)
            return NAN if math.isnan(constant) else Interval(constant, constant)
        case ast.Unary(operator):
            return _UNARY[operator](*parts)
        case ast.Binary(operator):
            return _BINARY[operator](*parts)
        case ast.In(negated=negated):
            found = reduce(disjunction, (equal(parts[0], choice) for choice in parts[1:]), FALSE)
            return invert(found) if negated else found
        case ast.Call():
            return _call(node, parts, functions)
        case _:
            raise TypeError(f"not a scoring expression: {node!r}")


def _call(call: ast.Call, parts: tuple[Interval, ...], functions: FunctionRegistry) -> Interval:
    match call.function:
        case "if":
            chosen = [
                part
                for part, value in zip(parts[1:], (1.0, 0.0), strict=True)
                if value in truth(parts[0])
            ]
            return union(*chosen)
        case "coalesce":
            return union(*parts)
        case "bound":
            return EITHER
    function = functions.find(call.function)
    if function is None:
        raise TypeError(f"not a scoring function: {call.function!r}")
    found = function.bounds(*parts)
    nan = function.keeps_nan and any(each.nan or not each.is_finite for each in parts)
    return Interval(found.low, found.high, nan)


_UNARY: Mapping[str, Callable[[Interval], Interval]] = {
    "+": lambda value: value,
    "-": negate,
    "!": invert,
}

_BINARY: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "+": add,
    "-": subtract,
    "*": multiply,
    "/": divide,
    "<": less,
    "<=": at_most,
    ">": lambda left, right: less(right, left),
    ">=": lambda left, right: at_most(right, left),
    "=": equal,
    "!=": lambda left, right: invert(equal(left, right)),
    "&&": conjunction,
    "||": disjunction,
}
