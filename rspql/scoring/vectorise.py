"""Vectorised evaluation: a scoring expression or condition as a function over whole arrays.

Numbers are doubles throughout, also in comparisons: integers beyond 2^53 and decimals lose their
last digits. NaN stands for an error, an unbound variable, or a value that is not a number. A
division by zero is an error for all types, as SPARQL defines it for integers and decimals.
Conditions are 1 for true, 0 for false, NaN for an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

import numpy as np
import numpy.typing as npt

from rspql import ast
from rspql.scoring.datatypes import constant_value
from rspql.scoring.fold import operands, postorder
from rspql.scoring.functions import FloatArray, FunctionRegistry
from rspql.scoring.library import DEFAULT_FUNCTIONS

BoolArray = npt.NDArray[np.bool_]
Columns = Mapping[str, FloatArray]
ScoreFunction = Callable[[Columns], FloatArray]
ConditionFunction = Callable[[Columns], BoolArray]

_Operation = Callable[..., FloatArray]


def vectorise(
    expression: ast.Expression, functions: FunctionRegistry = DEFAULT_FUNCTIONS
) -> ScoreFunction:
    """Return a function from columns of numbers to a column of scores.

    It returns a single score if the expression needs no column. NaN stands for an error: a value
    that is missing or not a number, or a division by zero. A row whose score is NaN is not a
    solution.

    >>> score = vectorise(ast.Binary("*", ast.Literal("2", ast.XSD + "integer"), ast.Variable("x")))
    >>> score({"x": np.array([1.0, np.nan, 3.0])})
    array([ 2., nan,  6.])
    """
    # A program for a stack machine: running it takes no recursion, however deep the expression is.
    program = [(_operation(node, functions), len(operands(node))) for node in postorder(expression)]

    def run(columns: Columns) -> FloatArray:
        stack: list[FloatArray] = []
        with np.errstate(all="ignore"):
            for operate, count in program:
                start = len(stack) - count
                parts = stack[start:]
                del stack[start:]
                stack.append(operate(columns, *parts))
        return stack.pop()

    return run


def vectorise_condition(
    expression: ast.Expression, functions: FunctionRegistry = DEFAULT_FUNCTIONS
) -> ConditionFunction:
    """Return a function from columns of numbers to booleans: True if the condition holds.

    An error counts as False.

    >>> condition = ast.Binary(">", ast.Variable("x"), ast.Literal("2", ast.XSD + "integer"))
    >>> vectorise_condition(condition)({"x": np.array([1.0, np.nan, 3.0])})
    array([False, False,  True])
    """
    value = vectorise(expression, functions)

    def run(columns: Columns) -> BoolArray:
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
        return np.broadcast_to(_truth(value(columns)) == 1.0, shape)

    return run


def _operation(node: ast.Expression, functions: FunctionRegistry) -> Callable[..., FloatArray]:
    """Return the operation of a node, as a function of the columns and of its operands' values."""
    match node:
        case ast.Variable(name):
            return lambda columns: columns[name]
        case ast.Literal():
            constant = np.asarray(constant_value(node))
            return lambda _columns: constant
        case ast.Unary(operator):
            return _of_parts(_UNARY[operator])
        case ast.Binary(operator):
            return _of_parts(_BINARY[operator])
        case ast.In(negated=negated):
            return _of_parts(_not_in if negated else _in)
        case ast.Call(function):
            return _of_parts(_function(function, functions))
        case _:
            raise TypeError(f"not a scoring expression: {node!r}")


def _of_parts(operate: _Operation) -> _Operation:
    return lambda _columns, *parts: operate(*parts)


def _function(name: ast.Iri | str, functions: FunctionRegistry) -> _Operation:
    if isinstance(name, str) and name in _FORMS:
        return _FORMS[name]
    function = functions.find(name)
    if function is None:
        raise TypeError(f"not a scoring function: {name!r}")
    return function.apply


def _divide(left: FloatArray, right: FloatArray) -> FloatArray:
    return np.where(right == 0, np.nan, left / right)


# Conditions -----------------------------------------------------------------------------------


def _truth(value: FloatArray) -> FloatArray:
    return np.where(np.isnan(value), np.nan, value != 0)


def _not(value: FloatArray) -> FloatArray:
    return 1.0 - _truth(value)


def _and(left: FloatArray, right: FloatArray) -> FloatArray:
    # False if either is false, even if the other is an error; likewise for true in _or.
    unknown = np.isnan(left) | np.isnan(right)
    return np.where((left == 0) | (right == 0), 0.0, np.where(unknown, np.nan, 1.0))


def _or(left: FloatArray, right: FloatArray) -> FloatArray:
    return _not(_and(_not(left), _not(right)))


def _comparison(compare: Callable[[FloatArray, FloatArray], BoolArray]) -> _Operation:
    def operate(left: FloatArray, right: FloatArray) -> FloatArray:
        return np.where(np.isnan(left) | np.isnan(right), np.nan, compare(left, right))

    return operate


_equal = _comparison(np.equal)


def _in(value: FloatArray, *choices: FloatArray) -> FloatArray:
    nothing = np.where(np.isnan(value), np.nan, 0.0)
    return reduce(_or, (_equal(value, choice) for choice in choices), nothing)


def _not_in(value: FloatArray, *choices: FloatArray) -> FloatArray:
    return _not(_in(value, *choices))


def _if(condition: FloatArray, then: FloatArray, otherwise: FloatArray) -> FloatArray:
    return np.where(np.isnan(condition), np.nan, np.where(condition != 0, then, otherwise))


def _coalesce(*values: FloatArray) -> FloatArray:
    return reduce(lambda first, second: np.where(np.isnan(first), second, first), values)


def _bound(value: FloatArray) -> FloatArray:
    return np.where(np.isnan(value), 0.0, 1.0)


_FORMS: Mapping[str, _Operation] = {"if": _if, "coalesce": _coalesce, "bound": _bound}

_UNARY: Mapping[str, _Operation] = {"+": np.positive, "-": np.negative, "!": _not}

_BINARY: Mapping[str, _Operation] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divide,
    "=": _equal,
    "!=": _comparison(np.not_equal),
    "<": _comparison(np.less),
    "<=": _comparison(np.less_equal),
    ">": _comparison(np.greater),
    ">=": _comparison(np.greater_equal),
    "&&": _and,
    "||": _or,
}
