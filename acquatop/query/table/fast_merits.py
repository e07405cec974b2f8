"""Merits of a table's solutions on columns, where numbers and comparisons are all that there is."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from acquatop.topk.contract import FloatArray
from replica.store import Solution
from replica.terms import number_of
from rspql import ast
from rspql.plan import TableRanking
from rspql.scoring import FunctionRegistry, vectorise, vectorise_condition

_LARGEST = 2.0**53
"""Number up to which all integers are doubles."""
_ARITHMETIC = ("+", "-", "*")
_COMPARES = ("=", "!=", "<", ">", "<=", ">=")

FastMerits = Callable[[Sequence[Solution]], FloatArray | None]
"""Function from solutions to ranks; None for values that only an engine compares rightly."""


def fast_merits(ranking: TableRanking, functions: FunctionRegistry) -> FastMerits | None:
    """Return the ranks' function on columns; None if an engine is needed.

    The score must be made of + - * and numbers, filters of comparisons of variables with numbers.
    """
    filters = [each.expression for each in ranking.beside if isinstance(each, ast.Filter)]
    computed = [each for each in ranking.beside if not isinstance(each, ast.Filter)]
    names = _variables([ranking.score, *filters])
    if not (
        all(isinstance(each, ast.Assignment) for each in computed)
        and names <= set(ranking.variables)
        and _is_arithmetic(ranking.score)
        and all(map(_is_condition, filters))
    ):
        return None
    # Filters within the SERVICE are decided here as well if a feed does not decide them.
    if any(isinstance(each, ast.Filter) for each in ranking.pattern.group.elements):
        return None
    score = vectorise(ranking.score, functions)
    compared = _variables(filters)
    conditions = [vectorise_condition(each, functions) for each in filters]

    def merits(solutions: Sequence[Solution]) -> FloatArray | None:
        columns = {
            name: np.array([number_of(each.get(name, "")) for each in solutions]) for name in names
        }
        if any((np.abs(column) > _LARGEST).any() for column in columns.values()):
            return None
        # An IRI differs from a number, and a text is an error: only an engine tells them apart.
        if any(np.isnan(columns[name]).any() for name in compared):
            return None
        ranks = np.array(np.broadcast_to(score(columns), len(solutions)), dtype=np.float64)
        for holds in conditions:
            ranks[~np.broadcast_to(holds(columns), len(solutions))] = np.nan
        return ranks

    return merits


def _variables(expressions: Sequence[ast.Expression]) -> set[str]:
    nodes = (node for each in expressions for node in ast.walk(each))
    return {node.name for node in nodes if isinstance(node, ast.Variable)}


def _is_arithmetic(expression: ast.Expression) -> bool:
    return all(map(_is_term_of_sum, ast.walk(expression)))


def _is_term_of_sum(node: ast.Node) -> bool:
    match node:
        case ast.Binary(operator):
            return operator in _ARITHMETIC
        case ast.Unary(operator):
            return operator in ("+", "-")
        case _:
            return _is_operand(node)


def _is_operand(node: ast.Node) -> bool:
    """Return True for a variable, or a number."""
    if isinstance(node, ast.Literal):
        number = number_of(f'"{node.lexical}"^^<{node.datatype}>')
        return not np.isnan(number)
    return isinstance(node, ast.Variable)


def _is_condition(expression: ast.Expression) -> bool:
    """Return True for comparisons of variables with each other or with numbers, joined or not."""
    match expression:
        case ast.Binary("&&" | "||", left, right):
            return _is_condition(left) and _is_condition(right)
        case ast.Binary(operator, left, right) if operator in _COMPARES:
            return _is_operand(left) and _is_operand(right) and _has_number(left, right)
    return False


def _has_number(*operands: ast.Expression) -> bool:
    """Return True if an operand is a number: so the comparison is one of numbers, or an error."""
    return any(isinstance(each, ast.Literal) for each in operands)
