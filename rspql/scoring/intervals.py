"""How far a score can reach: interval arithmetic over a scoring expression.

This is what lets an answer be called exact without having seen every value: whatever the
values within the given intervals, the score lies within the returned one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from rspql import ast
from rspql.scoring.functions import EVERYTHING, FUNCTIONS, Interval

__all__ = ["EVERYTHING", "Interval", "bounds"]


def bounds(expression: ast.Expression, variables: Mapping[str, Interval]) -> Interval:
    """Return an interval that holds every score possible; variables not named may be anything.

    The interval is sound, not always tight: a variable that occurs twice is taken as two.

    >>> score = ast.Binary("-", ast.Literal("10", ast.XSD + "integer"), ast.Variable("x"))
    >>> bounds(score, {"x": Interval(1.0, 4.0)})
    Interval(low=6.0, high=9.0)
    """
    match expression:
        case ast.Variable(name):
            return variables.get(name, EVERYTHING)
        case ast.Literal(lexical):
            return Interval(float(lexical), float(lexical))
        case ast.Unary(operator, operand):
            inner = bounds(operand, variables)
            return inner if operator == "+" else Interval(-inner.high, -inner.low)
        case ast.Binary(operator, left, right):
            return _OPERATORS[operator](bounds(left, variables), bounds(right, variables))
        case ast.Call(function, arguments):
            assert isinstance(function, str), "check_expression lets only named functions pass"
            return FUNCTIONS[function.lower()].bounds(*(bounds(argument, variables) for argument in arguments))
        case _:
            raise TypeError(f"not a scoring expression: {expression!r}")


def _add(left: Interval, right: Interval) -> Interval:
    return _closed(left.low + right.low, left.high + right.high)


def _subtract(left: Interval, right: Interval) -> Interval:
    return _closed(left.low - right.high, left.high - right.low)


def _multiply(left: Interval, right: Interval) -> Interval:
    # An infinite end means "unbounded", so that zero times it is zero.
    products = [0.0 if a == 0 or b == 0 else a * b for a in (left.low, left.high) for b in (right.low, right.high)]
    return _closed(min(products), max(products))


def _divide(left: Interval, right: Interval) -> Interval:
    if 0.0 in right or math.isinf(right.low) or math.isinf(right.high):
        return EVERYTHING
    quotients = [a / b for a in (left.low, left.high) for b in (right.low, right.high)]
    return _closed(min(quotients), max(quotients))


def _closed(low: float, high: float) -> Interval:
    return Interval(-math.inf if math.isnan(low) else low, math.inf if math.isnan(high) else high)


_OPERATORS: Mapping[str, Callable[[Interval, Interval], Interval]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
}
