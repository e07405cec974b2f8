"""Comparisons with NaN for engines that call them true or an error: SPARQL has them false."""

from __future__ import annotations

from rspql import ast
from rspql.scoring.fold import fold, operands, with_operands
from rspql.scoring.library import division_by_zero

_ORDER = ("<", "<=", ">", ">=")
_FALSE = ast.Literal("false", ast.XSD + "boolean")


def with_ordered_nan(
    expression: ast.Expression, *, keeps_only_true: bool = False
) -> ast.Expression:
    """Return an expression whose comparisons by order are false for NaN, and no error.

    If only true values are kept, an error is as good as false.

    >>> less = ast.Binary("<", ast.Variable("x"), ast.Variable("y"))
    >>> with_ordered_nan(less, keeps_only_true=True) == less
    True
    """
    if keeps_only_true:
        match expression:
            case ast.Binary(operator) if operator in _ORDER:
                parts = tuple(map(with_ordered_nan, operands(expression)))
                return _not_same(with_operands(expression, parts))
            case ast.Binary("&&"):
                sides = (
                    with_ordered_nan(each, keeps_only_true=True) for each in operands(expression)
                )
                return with_operands(expression, tuple(sides))
    return fold(expression, _step)


def _step(node: ast.Expression, parts: tuple[ast.Expression, ...]) -> ast.Expression:
    plain = with_operands(node, parts)
    if not isinstance(plain, ast.Binary) or plain.operator not in _ORDER:
        return plain
    # Only NaN differs from itself.
    left, right = plain.left, plain.right
    if _is_never_nan(left) and _is_never_nan(right):
        return plain
    plain = _not_same(plain)
    fails = division_by_zero()
    by_right = fails if _is_never_nan(right) else _if_nan(right, left, fails)
    by_left = by_right if _is_never_nan(left) else _if_nan(left, right, by_right)
    return ast.Call("coalesce", (plain, by_left))


def _not_same(comparison: ast.Expression) -> ast.Expression:
    """Return a comparison that does not hold for NaN and NaN, although they are the same."""
    match comparison:
        case ast.Binary("<=" | ">=" as order, left, right, span=span):
            if _is_never_nan(left) or _is_never_nan(right):
                return comparison
            strict = ast.Binary(order[0], left, right, span=span)
            return ast.Binary("||", strict, ast.Binary("=", left, right, span=span), span=span)
        case _:
            return comparison


def _if_nan(
    value: ast.Expression, other: ast.Expression, otherwise: ast.Expression
) -> ast.Expression:
    is_nan = ast.Binary("!=", value, value)
    are_numbers = ast.Binary("&&", is_nan, ast.Call("isnumeric", (other,)))
    return ast.Call("if", (are_numbers, _FALSE, otherwise))


def _is_never_nan(expression: ast.Expression) -> bool:
    return isinstance(expression, ast.Literal) and expression.lexical != "NaN"
