"""Ranges of variables that follow from filters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from rspql import ast
from rspql.scoring.datatypes import literal_value
from rspql.scoring.intervals import EVERYTHING, Interval

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}


def ranges_of(
    filters: Iterable[ast.Expression], known: Mapping[str, Interval] | None = None
) -> dict[str, Interval]:
    """Return the ranges of variables if all filters hold; bounds are included, to be safe.

    Uses only comparisons of a variable with a number, alone or joined by ``&&``. ``known`` are
    ranges that hold in any case.

    >>> five = ast.Literal("5", ast.XSD + "integer")
    >>> ranges_of([ast.Binary(">", ast.Variable("x"), five)])
    {'x': Interval(low=5.0, high=inf)}
    """
    ranges = dict(known or {})
    pending = list(filters)
    while pending:
        each = pending.pop()
        if isinstance(each, ast.Binary) and each.operator == "&&":
            pending += [each.left, each.right]
        elif isinstance(each, ast.Binary) and each.operator in _MIRRORED:
            _narrow(ranges, each.left, each.operator, each.right)
            _narrow(ranges, each.right, _MIRRORED[each.operator], each.left)
    return ranges


def range_of_aggregate(function: str, values: Interval, *, may_be_none: bool = False) -> Interval:
    """Return the interval of an aggregate, given that of the values; there ``may_be_none``.

    For sums and averages only the sign is used: rounding can carry them past the other bounds.

    >>> range_of_aggregate("count", EVERYTHING), range_of_aggregate("sum", Interval(2.0, 5.0))
    (Interval(low=1.0, high=inf), Interval(low=0.0, high=inf))
    """
    match function:
        case "count":
            return Interval(0.0 if may_be_none else 1.0, math.inf)
        case "min" | "max":
            return values
        case _:
            return Interval(
                0.0 if values.low >= 0 else -math.inf, 0.0 if values.high <= 0 else math.inf
            )


def _narrow(
    ranges: dict[str, Interval], left: ast.Expression, operator: str, right: ast.Expression
) -> None:
    value = _constant(right)
    if not isinstance(left, ast.Variable) or value is None:
        return
    before = ranges.get(left.name, EVERYTHING)
    low = max(before.low, value) if operator in (">", ">=", "=") else before.low
    high = min(before.high, value) if operator in ("<", "<=", "=") else before.high
    if low <= high:  # else the filters contradict each other, and nothing passes
        ranges[left.name] = Interval(low, high)


def _constant(expression: ast.Expression) -> float | None:
    if isinstance(expression, ast.Unary) and expression.operator == "-":
        inner = _constant(expression.operand)
        return None if inner is None else -inner
    value = literal_value(expression) if isinstance(expression, ast.Literal) else math.nan
    return value if math.isfinite(value) else None
