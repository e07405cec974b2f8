"""Kinds of numbers that a part of an expression can have: whole, decimal, xsd:float, xsd:double."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Flag, auto

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
    together = _together(parts)
    if function.result is not ResultType.QUOTIENT:
        return together
    # Where it clamps, the value is 0 or 1.
    is_double = parts[0] is NumberKind.DOUBLE
    return together | (NumberKind.WHOLE if is_double else NumberKind.WHOLE | NumberKind.DECIMAL)


def _together(parts: tuple[NumberKind, ...]) -> NumberKind:
    found = NumberKind(0)
    for part in parts:
        found |= part
    return found


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
        found = found or (_computes(node) and NumberKind.DECIMAL in kind)
        return kind

    fold(expression, step)
    return found


def _computes(node: ast.Expression) -> bool:
    if isinstance(node, ast.Binary):
        return node.operator in _ARITHMETIC
    return isinstance(node, ast.Call) and node.function not in ("if", "coalesce", "bound")
