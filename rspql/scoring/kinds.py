"""Kinds of numbers that a part of an expression can have: whole, decimal, xsd:float, xsd:double."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto
from functools import cache

from rspql import ast
from rspql.scoring.datatypes import DECIMAL, DOUBLE, FLOAT, INTEGER, literal_value, primitive
from rspql.scoring.fold import fold
from rspql.scoring.functions import FunctionRegistry, ResultType


class NumberKind(Flag):
    """Kinds that values can have. A decimal without a fraction is a whole number, too."""

    WHOLE = auto()
    DECIMAL = auto()
    SINGLE = auto()
    DOUBLE = auto()


EXACT = NumberKind.WHOLE | NumberKind.DECIMAL
ANY = EXACT | NumberKind.SINGLE | NumberKind.DOUBLE
_OF_TYPES = {
    INTEGER: NumberKind.WHOLE,
    DECIMAL: NumberKind.DECIMAL,
    FLOAT: NumberKind.SINGLE,
    DOUBLE: NumberKind.DOUBLE,
}
_ARITHMETIC = ("+", "-", "*", "/")


def kinds(
    expression: ast.Expression, functions: FunctionRegistry, datatypes: Mapping[str, str]
) -> NumberKind:
    """Return the kinds that an expression's values can have.

    >>> kinds(ast.Binary("/", ast.Variable("x"), ast.Variable("x")), None, {"x": INTEGER})
    <NumberKind.DECIMAL: 2>
    """
    return fold(expression, lambda node, parts: kind_of(node, parts, functions, datatypes))


def kind_of(
    node: ast.Expression,
    parts: tuple[NumberKind, ...],
    functions: FunctionRegistry,
    datatypes: Mapping[str, str],
) -> NumberKind:
    """Return the kinds that a node's values can have, given those of its operands."""
    match node:
        case ast.Variable(name):
            return _OF_TYPES.get(primitive(datatypes.get(name)) or "", ANY)
        case ast.Literal():
            return _of_literal(node)
        case ast.Unary("+" | "-"):
            return parts[0]
        case ast.Binary("+" | "-" | "*" | "/" as operator):
            return _wider(*parts, divides=operator == "/")
        case ast.Call("if"):
            return parts[1] | parts[2]
        case ast.Call("coalesce"):
            return _together(parts)
        case ast.Call("bound") | ast.Unary() | ast.Binary() | ast.In():
            return NumberKind.WHOLE
        case ast.Call():
            return _of_call(node, parts, functions)
        case _:
            return ANY


def _of_literal(literal: ast.Literal) -> NumberKind:
    kind = _OF_TYPES.get(primitive(literal.datatype) or "", NumberKind.WHOLE)
    is_whole = kind is NumberKind.DECIMAL and literal_value(literal).is_integer()
    return NumberKind.WHOLE if is_whole else kind


def _of_call(
    call: ast.Call, parts: tuple[NumberKind, ...], functions: FunctionRegistry
) -> NumberKind:
    function = functions.find(call.function)
    if function is None or function.result is ResultType.DOUBLE:
        return NumberKind.DOUBLE
    if is_share_of_doubles(call, parts):
        # Where it clamps, the value is 0 or 1.
        return NumberKind.DOUBLE | NumberKind.WHOLE
    together = _together(parts)
    if function.result is not ResultType.QUOTIENT:
        return together
    return together | NumberKind.WHOLE | NumberKind.DECIMAL


def is_share_of_doubles(node: ast.Expression, parts: tuple[NumberKind, ...]) -> bool:
    """Return True if a node is ``norm`` of a double, given its operands' kinds."""
    is_share = isinstance(node, ast.Call) and node.function == "norm"
    return is_share and parts[0] is NumberKind.DOUBLE


def _together(parts: tuple[NumberKind, ...]) -> NumberKind:
    found = NumberKind(0)
    for part in parts:
        found |= part
    return found


@cache
def _wider(left: NumberKind, right: NumberKind, *, divides: bool) -> NumberKind:
    found = NumberKind(0)
    for each in NumberKind:
        lower = [other for other in NumberKind if other.value <= each.value]
        if (each in left and any(other in right for other in lower)) or (
            each in right and any(other in left for other in lower)
        ):
            found |= each
    if divides and NumberKind.WHOLE in found:
        found = (found & ~NumberKind.WHOLE) | NumberKind.DECIMAL
    return found


def needs_ratios(
    expression: ast.Expression, functions: FunctionRegistry, datatypes: Mapping[str, str]
) -> bool:
    """Return True if decimals can be computed with: doubles would lose their last digits."""
    found = False

    def step(node: ast.Expression, parts: tuple[NumberKind, ...]) -> NumberKind:
        nonlocal found
        kind = kind_of(node, parts, functions, datatypes)
        found = found or computes_decimals(node, parts, kind)
        return kind

    fold(expression, step)
    return found


def computes_decimals(
    node: ast.Expression, parts: tuple[NumberKind, ...], kind: NumberKind
) -> bool:
    """Return True if a node of some kinds computes decimals that doubles do not hold."""
    if NumberKind.DECIMAL not in kind:
        return False
    if isinstance(node, ast.Binary):
        return node.operator in _ARITHMETIC and not _weighs_share(node, parts)
    return isinstance(node, ast.Call) and node.function not in ("if", "coalesce", "bound")


def _weighs_share(node: ast.Binary, parts: tuple[NumberKind, ...]) -> bool:
    """Return True for a constant times ``norm`` of a double: where it clamps, times 0 or 1."""
    sides = ((node.left, node.right, parts[1]), (node.right, node.left, parts[0]))
    return node.operator == "*" and any(
        isinstance(weight, ast.Literal)
        and isinstance(share, ast.Call)
        and share.function == "norm"
        and NumberKind.DECIMAL not in kind
        for weight, share, kind in sides
    )
