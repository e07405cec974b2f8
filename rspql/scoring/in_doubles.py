"""Translation of scores to plain SPARQL in which all numbers are doubles.

A SPARQL engine then computes the same as ``vectorise``, also where its decimals have too few digits
or fail. A double forgets the type that it was made of, and a zero divides integers otherwise than
doubles. So each part of an expression is translated twice: to its value, and to a condition that
says if its type is floating.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from rspql import ast
from rspql.scoring.datatypes import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    FLOATING,
    INTEGER,
    constant_value,
    literal_value,
    primitive,
)
from rspql.scoring.fold import fold, operands, postorder, with_operands
from rspql.scoring.functions import FunctionRegistry, ResultType
from rspql.scoring.library import division_by_zero

_ONE = ast.Literal("1.0E0", DOUBLE)
_ZERO = ast.Literal("0.0E0", DOUBLE)
_NEGATIVE_ZERO = ast.Literal("-0.0E0", DOUBLE)
_TRUE, _FALSE = ast.Literal("true", BOOLEAN), ast.Literal("false", BOOLEAN)
_SIGN_CHANGING = ("-", "*", "/")


@dataclass(frozen=True)
class _Part:
    """A part of an expression: its value as a double, and the condition of a floating type."""

    value: ast.Expression
    floating: ast.Expression


def in_doubles(
    expression: ast.Expression, functions: FunctionRegistry, largest: int
) -> ast.Expression | None:
    """Return an expression without functions of this package in doubles.

    None if it is no score or condition over numbers, or would have more nodes than ``largest``.
    """
    has_signs = any(_divides(node) for node in postorder(expression))

    def step(node: ast.Expression, parts: tuple[_Part | None, ...]) -> _Part | None:
        known = tuple(part for part in parts if part is not None)
        if len(known) < len(parts):
            return None
        part = _part(node, known, functions)
        if part is None or not is_within(largest, part.value, part.floating):
            return None
        return _with_one_zero(node, part) if has_signs else part

    found = fold(expression, step)
    return None if found is None else found.value


def is_within(largest: int, *expressions: ast.Expression) -> bool:
    """Return True if expressions have at most so many nodes; shared ones count each time."""
    pending, count = list(expressions), 0
    while pending:
        count += 1
        if count > largest:
            return False
        pending.extend(operands(pending.pop()))
    return True


def _part(
    node: ast.Expression, parts: tuple[_Part, ...], functions: FunctionRegistry
) -> _Part | None:
    plain = with_operands(node, tuple(part.value for part in parts))
    types = tuple(part.floating for part in parts)
    match node:
        case ast.Variable():
            datatype = ast.Call("datatype", (node,))
            value = ast.Binary("*", node, _ONE, span=node.span)
            return _Part(value, ast.In(datatype, (ast.Iri(DOUBLE), ast.Iri(FLOAT))))
        case ast.Literal():
            return _Part(_literal(node), _TRUE if node.datatype in FLOATING else _FALSE)
        case ast.Binary("/"):
            divisor = _divisor(node, *parts)
            value = ast.Binary("/", parts[0].value, divisor, span=node.span)
            return _Part(value, reduce(_or, types))
        case ast.Unary("+" | "-") | ast.Binary("+" | "-" | "*"):
            return _Part(plain, reduce(_or, types))
        case ast.Unary() | ast.Binary() | ast.In():
            return _Part(plain, _FALSE)
        case ast.Call():
            return _call(node, plain, parts, functions)
        case _:
            return None


def _call(
    call: ast.Call, plain: ast.Expression, parts: tuple[_Part, ...], functions: FunctionRegistry
) -> _Part | None:
    types = tuple(part.floating for part in parts)
    match call.function:
        case "bound":
            return _Part(call, _FALSE)
        case "if":
            return _Part(plain, _if(parts[0].value, types[1], types[2]))
        case "coalesce":
            return _Part(plain, _type_of_first(parts))
    known = functions.find(call.function)
    if known is None:
        return None
    is_double = known.result is ResultType.DOUBLE
    return _Part(plain, _TRUE if is_double else reduce(_or, types))


def _literal(literal: ast.Literal) -> ast.Literal:
    if primitive(literal.datatype) is None:
        return literal
    is_single = literal.datatype == FLOAT and literal.lexical not in ("NaN", "INF", "+INF", "-INF")
    lexical = repr(literal_value(literal)) if is_single else literal.lexical
    return ast.Literal(lexical, DOUBLE, span=literal.span)


def _divides(node: ast.Expression) -> bool:
    """Return True if a node is a quotient whose divisor may be zero."""
    if not isinstance(node, ast.Binary) or node.operator != "/":
        return False
    return not isinstance(node.right, ast.Literal) or constant_value(node.right) == 0


def _divisor(node: ast.Binary, left: _Part, right: _Part) -> ast.Expression:
    """Return a divisor that is an error where it is zero and neither operand's type is floating."""
    if not _divides(node):
        return right.value
    unless_floating = _if(left.floating, _ZERO, division_by_zero())
    zero = _if(right.floating, right.value, unless_floating)
    if zero == right.value:
        return right.value
    is_zero = ast.Binary("=", right.value, ast.Literal("0", INTEGER))
    return ast.Call("if", (is_zero, zero, right.value))


def _with_one_zero(node: ast.Expression, part: _Part) -> _Part:
    """Return a part whose zeros are positive if they are integers or decimals.

    Adding a negative zero changes nothing, adding another one makes a zero positive.
    """
    changes = (
        node.operator in _SIGN_CHANGING
        if isinstance(node, ast.Unary | ast.Binary)
        else isinstance(node, ast.Call) and node.function in ("ceil", "round")
    )
    if not changes or part.floating == _TRUE:
        return part
    return _Part(
        ast.Binary("+", part.value, _if(part.floating, _NEGATIVE_ZERO, _ZERO)), part.floating
    )


def _or(left: ast.Expression, right: ast.Expression) -> ast.Expression:
    if left == right or _TRUE in (left, right):
        return _TRUE if _TRUE in (left, right) else left
    if _FALSE in (left, right):
        return right if left == _FALSE else left
    return ast.Binary("||", left, right)


def _if(
    condition: ast.Expression, then: ast.Expression, otherwise: ast.Expression
) -> ast.Expression:
    if condition == _TRUE or then == otherwise:
        return then
    return otherwise if condition == _FALSE else ast.Call("if", (condition, then, otherwise))


def _type_of_first(parts: tuple[_Part, ...]) -> ast.Expression:
    """Return the condition of a floating type for the first part that has a value."""
    if len({part.floating for part in parts}) == 1 and parts[0].floating in (_TRUE, _FALSE):
        return parts[0].floating
    asked = (
        ast.Call("if", (ast.Binary("=", each.value, each.value), each.floating, each.floating))
        for each in parts
    )
    return ast.Call("coalesce", tuple(asked))
