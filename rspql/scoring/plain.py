"""Evaluation of scores in which nothing tells an error from the number NaN.

Both are NaN all the way, and numpy computes with them at no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rspql import ast
from rspql.scoring.clamped import Clamped
from rspql.scoring.datatypes import constant_value
from rspql.scoring.fold import operands, postorder
from rspql.scoring.functions import FloatArray, FunctionRegistry

FORMS = ("if", "coalesce", "bound")
"""Calls that are no functions of numbers."""

_Columns = Mapping[str, FloatArray]
_Operation = Callable[..., FloatArray]


def has_plain_errors(expression: ast.Expression, functions: FunctionRegistry) -> bool:
    """Return True if nothing in an expression tells an error from the number NaN."""
    return all(
        _is_plain(node, functions) and not may_divide_by_zero(node)
        for node in postorder(expression)
    )


def _is_plain(node: ast.Expression, functions: FunctionRegistry) -> bool:
    match node:
        case ast.Variable() | ast.Literal() | ast.Unary("+" | "-"):
            return True
        case ast.Binary(operator):
            return operator in _PLAIN
        case ast.Call(function):
            return function not in FORMS and functions.find(function) is not None
        case _:
            return False


def may_divide_by_zero(node: ast.Expression) -> bool:
    """Return True for a quotient whose divisor can be zero."""
    if not isinstance(node, ast.Binary) or node.operator != "/":
        return False
    return not isinstance(node.right, ast.Literal) or constant_value(node.right) == 0


def plainly(expression: ast.Expression, functions: FunctionRegistry) -> _Operation:
    """Return a function from columns to scores in doubles."""
    program = _Program(expression, functions)
    return lambda columns, *_types: program.run(columns, lambda _shares: None)


def plainly_unless_clamped(
    expression: ast.Expression, functions: FunctionRegistry, count: int, exactly: _Operation
) -> _Operation:
    """Return a function from columns to scores in doubles.

    Rows in which at least ``count`` shares are clamped are computed ``exactly``.
    """
    program = _Program(expression, functions)

    def run(columns: _Columns, *types: object) -> FloatArray:
        clamped = Clamped(count)
        scores = program.run(columns, clamped.note)
        rows = clamped.rows
        if rows is None:
            return scores
        if not rows.ndim or any(each.shape != rows.shape for each in columns.values()):
            return exactly(columns)  # a share of constants
        scores[rows] = exactly({name: column[rows] for name, column in columns.items()})
        return scores

    return run


class _Program:
    """Program for a stack machine: running it takes no recursion, however deep the expression."""

    def __init__(self, expression: ast.Expression, functions: FunctionRegistry) -> None:
        self._steps = [
            (_operation(node, functions), len(operands(node)), _is_share(node))
            for node in postorder(expression)
        ]

    def run(self, columns: _Columns, note_shares: Callable[[FloatArray], None]) -> FloatArray:
        """Return the scores."""
        stack: list[FloatArray] = []
        with np.errstate(all="ignore"):
            for operate, count, is_share in self._steps:
                start = len(stack) - count
                parts = stack[start:]
                del stack[start:]
                stack.append(operate(columns, *parts))
                if is_share:
                    note_shares(stack[-1])
        return stack.pop()


def _is_share(node: ast.Expression) -> bool:
    return isinstance(node, ast.Call) and node.function == "norm"


def _operation(node: ast.Expression, functions: FunctionRegistry) -> _Operation:
    match node:
        case ast.Variable(name):
            return lambda columns: columns[name]
        case ast.Literal():
            constant = np.asarray(constant_value(node))
            return lambda _columns: constant
        case ast.Unary(operator) | ast.Binary(operator):
            compute = _SIGNS[operator] if isinstance(node, ast.Unary) else _PLAIN[operator]
            return lambda _columns, *parts: compute(*parts)
        case ast.Call(function):
            found = functions.find(function)
            assert found is not None, "only plain expressions are computed plainly"
            return lambda _columns, *parts: found.apply(*parts)
        case _:
            raise TypeError(f"not a plain expression: {node!r}")


_SIGNS: Mapping[str, _Operation] = {"+": np.positive, "-": np.negative}
_PLAIN: Mapping[str, _Operation] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
