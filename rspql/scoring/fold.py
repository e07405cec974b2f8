"""Traversal of an expression from leaves to root, without recursion, for any depth."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from rspql import ast

T = TypeVar("T")


def operands(expression: ast.Expression) -> tuple[ast.Expression, ...]:
    """Return the direct operands of an expression, in source order.

    >>> [each.name for each in operands(ast.Call("least", (ast.Variable("x"), ast.Variable("y"))))]
    ['x', 'y']
    """
    match expression:
        case ast.Unary():
            return (expression.operand,)
        case ast.Binary():
            return (expression.left, expression.right)
        case ast.In():
            return (expression.operand, *expression.choices)
        case ast.Call():
            return expression.arguments
        case ast.Aggregate(argument=ast.Node() as argument):
            return (argument,)
        case _:
            return ()


def with_operands(expression: ast.Expression, parts: tuple[ast.Expression, ...]) -> ast.Expression:
    """Return the expression with other operands, as many as it has."""
    span = expression.span
    match expression:
        case ast.Unary(operator):
            return ast.Unary(operator, *parts, span=span)
        case ast.Binary(operator):
            return ast.Binary(operator, *parts, span=span)
        case ast.In(_, _, negated):
            return ast.In(parts[0], parts[1:], negated, span=span)
        case ast.Call():
            return replace(expression, arguments=parts)
        case ast.Aggregate(function, ast.Node(), distinct, separator):
            return ast.Aggregate(function, parts[0], distinct, separator, span=span)
        case _:
            return expression


def postorder(expression: ast.Expression) -> list[ast.Expression]:
    """Return an expression's parts, each after its operands, the expression itself last."""
    pending, found = [expression], []
    while pending:
        node = pending.pop()
        found.append(node)
        pending.extend(operands(node))
    return found[::-1]


def fold(expression: ast.Expression, step: Callable[[ast.Expression, tuple[T, ...]], T]) -> T:
    """Apply ``step`` to each node and the results of its operands, from the leaves up.

    Returns the result for the expression itself.

    >>> expression = ast.Binary("+", ast.Variable("x"), ast.Unary("-", ast.Variable("y")))
    >>> fold(expression, lambda node, parts: 1 + max(parts, default=0))  # how deep it is
    3
    """
    results: list[T] = []
    for node in postorder(expression):
        start = len(results) - len(operands(node))
        parts = tuple(results[start:])
        del results[start:]
        results.append(step(node, parts))
    return results.pop()
