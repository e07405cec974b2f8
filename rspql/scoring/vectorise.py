"""A scoring expression as a function over whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rspql import ast
from rspql.scoring.functions import FUNCTIONS, FloatArray

Columns = Mapping[str, FloatArray]
ScoreFunction = Callable[[Columns], FloatArray]


def vectorise(expression: ast.Expression) -> ScoreFunction:
    """Return a function from columns of numbers to a column of scores.

    Numbers are doubles throughout. NaN stands for an error: a value that is missing or not a
    number, or a division by zero; a row whose score is NaN is not a solution.

    >>> score = vectorise(ast.Binary("*", ast.Literal("2", ast.XSD + "integer"), ast.Variable("x")))
    >>> score({"x": np.array([1.0, np.nan, 3.0])})
    array([ 2., nan,  6.])
    """
    match expression:
        case ast.Variable(name):
            return lambda columns: columns[name]
        case ast.Literal(lexical):
            constant = np.float64(lexical)
            return lambda _columns: np.asarray(constant)
        case ast.Unary(operator, operand):
            inner = vectorise(operand)
            return inner if operator == "+" else lambda columns: -inner(columns)
        case ast.Binary(operator, left, right):
            operate, first, second = _OPERATORS[operator], vectorise(left), vectorise(right)
            return lambda columns: operate(first(columns), second(columns))
        case ast.Call(function, arguments):
            assert isinstance(function, str), "check_expression lets only named functions pass"
            apply, parts = FUNCTIONS[function.lower()].apply, [vectorise(argument) for argument in arguments]
            return lambda columns: apply(*(part(columns) for part in parts))
        case _:
            raise TypeError(f"not a scoring expression: {expression!r}")


def _divide(left: FloatArray, right: FloatArray) -> FloatArray:
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(right == 0, np.nan, left / right)


def _quiet(operate: Callable[[FloatArray, FloatArray], FloatArray]) -> Callable[[FloatArray, FloatArray], FloatArray]:
    def apply(left: FloatArray, right: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", over="ignore"):
            return operate(left, right)

    return apply


_OPERATORS: Mapping[str, Callable[[FloatArray, FloatArray], FloatArray]] = {
    "+": _quiet(np.add),
    "-": _quiet(np.subtract),
    "*": _quiet(np.multiply),
    "/": _divide,
}
