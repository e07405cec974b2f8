"""Distances in scores: from a point of the query's own to one whose coordinates are variables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rspql import ast
from rspql.scoring.datatypes import DECIMAL, DOUBLE, INTEGER
from rspql.scoring.exact import number_of
from rspql.scoring.library import MATH

_LARGEST = 2**51
_FEWEST, _MOST = 2, 4


@dataclass(frozen=True)
class Distance:
    """Distance of a point, the ``centre``, from that of some variables: squared, or its root."""

    variables: tuple[str, ...]
    centre: tuple[float, ...]
    is_root: bool


def distance_in(expression: ast.Expression, datatypes: Mapping[str, str]) -> Distance | None:
    """Return the distance that an expression is; None if it is none, or has other digits.

    It is a sum of two to four squares, ``(?x - 3) * (?x - 3) + …``, of different variables, or the
    ``sqrt`` of that. Doubles must compute it as they do column by column: variables are doubles, or
    integers with an integer beside them.

    >>> x, y = ast.Variable("x"), ast.Variable("y")
    >>> apart = ast.Binary("-", x, ast.Literal("0.5", DECIMAL))
    >>> squares = [ast.Binary("*", each, each) for each in (apart, y)]
    >>> distance_in(ast.Binary("+", *squares), {"x": DOUBLE, "y": DOUBLE})
    Distance(variables=('x', 'y'), centre=(0.5, 0.0), is_root=False)
    """
    match expression:
        case ast.Call("sqrt" | ast.Iri(value=_), (inner,)) if _is_root(expression.function):
            squares, is_root = _squares(inner), True
        case _:
            squares, is_root = _squares(expression), False
    if squares is None or not _FEWEST <= len(squares) <= _MOST:
        return None
    parts = [_coordinate(each, datatypes) for each in squares]
    known = [each for each in parts if each is not None]
    variables = tuple(name for name, _ in known)
    if len(known) < len(squares) or len(set(variables)) < len(variables):
        return None
    return Distance(variables, tuple(value for _, value in known), is_root)


def _is_root(function: ast.Iri | str) -> bool:
    return function in ("sqrt", ast.Iri(MATH + "sqrt"))


def _squares(expression: ast.Expression) -> list[ast.Expression] | None:
    """Return what is squared in a sum of squares, added from the left; None if it is none."""
    squares: list[ast.Expression] = []
    while isinstance(expression, ast.Binary) and expression.operator == "+":
        squared = _squared(expression.right)
        if squared is None or len(squares) == _MOST:
            return None
        squares.append(squared)
        expression = expression.left
    first = _squared(expression)
    return None if first is None else [first, *reversed(squares)]


def _squared(expression: ast.Expression) -> ast.Expression | None:
    match expression:
        case ast.Binary("*", left, right) if left == right:
            return left
    return None


def _coordinate(apart: ast.Expression, datatypes: Mapping[str, str]) -> tuple[str, float] | None:
    """Return the variable of a difference, and the number that it is zero for."""
    match apart:
        case ast.Variable(name):
            return _placed(name, 0, INTEGER, 1, datatypes)
        case ast.Binary("-", ast.Variable(name), number):
            sign = 1
        case ast.Binary("-", number, ast.Variable(name)):
            sign = 1
        case ast.Binary("+", ast.Variable(name), number) | ast.Binary(
            "+", number, ast.Variable(name)
        ):
            sign = -1
        case _:
            return None
    while isinstance(number, ast.Unary) and number.operator in ("-", "+"):
        sign, number = (-sign if number.operator == "-" else sign), number.operand
    found = number_of(number) if isinstance(number, ast.Literal) else None
    if found is None or found.datatype not in (INTEGER, DECIMAL, DOUBLE):
        return None
    return _placed(name, float(found.value), found.datatype, sign, datatypes)


def _placed(
    name: str, value: float, datatype: str, sign: int, datatypes: Mapping[str, str]
) -> tuple[str, float] | None:
    kind = datatypes.get(name)
    is_whole = kind == INTEGER and datatype == INTEGER and abs(value) < _LARGEST
    if not (kind == DOUBLE or is_whole) or not math.isfinite(value):
        return None
    return name, float(sign * value)
