"""Capacity of doubles: the whole numbers that a score's integers and decimals are made of.

The scores of :mod:`rspql.scoring.vectorise` are those of SPARQL if all of these are small enough.
Then equal scores are equal doubles, and different scores different ones, in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce

from rspql import ast
from rspql.scoring.datatypes import INTEGER
from rspql.scoring.exact import number_of
from rspql.scoring.expand import in_operators
from rspql.scoring.fold import fold
from rspql.scoring.functions import FunctionRegistry, ResultType
from rspql.scoring.kinds import EXACT, NumberKind, kind_of
from rspql.scoring.ratios import common_scale, nearest

LIMIT = 2.0**51
"""Below this, whole numbers and their ratios are exact, and different ratios different doubles."""

_NOT_EXACT = math.inf
_ORDER = ("<", "<=", ">", ">=", "=", "!=")


@dataclass(frozen=True)
class Digits:
    """Numbers that a variable can have: their kinds, and the size of those that are exact.

    These are whole numbers up to ``greatest`` divided by ``scale``; it is ``fixed`` if it is the
    same for all of them.
    """

    greatest: float = 0.0
    scale: float = 1.0
    fixed: bool = True
    kind: NumberKind = NumberKind.DOUBLE


DOUBLES = Digits()
"""Doubles, which are what they are."""


@dataclass(frozen=True)
class _Part:
    """Digits of a part of an expression, and the largest number needed for it so far."""

    digits: Digits
    need: float = 0.0
    is_leaf: bool = False
    constant: Fraction | None = None

    @property
    def distinct(self) -> float:
        """Return the number that must be small for different values to be different doubles."""
        if not self.digits.kind & EXACT:
            return 0.0
        greatest, scale = self.digits.greatest, self.digits.scale
        return max(greatest, scale) if self.digits.fixed else _times(greatest, scale)


def is_exact(
    expression: ast.Expression, variables: Mapping[str, Digits], functions: FunctionRegistry
) -> bool:
    """Return True if doubles hold all digits of an expression's values, for variables of some size.

    Values of an expression that computes with xsd:float do not count as exact.

    >>> tenth = ast.Literal("0.1", ast.XSD + "decimal")
    >>> score = ast.Binary("*", ast.Variable("x"), tenth)
    >>> [
    ...     is_exact(score, {"x": Digits(greatest, kind=NumberKind.WHOLE)}, FunctionRegistry({}))
    ...     for greatest in (1e6, 1e16)
    ... ]
    [True, False]
    """
    found = fold(
        in_operators(expression, functions),
        lambda node, parts: _part(node, parts, variables, functions),
    )
    return max(found.need, found.distinct) < LIMIT


def capacity(
    expressions: Sequence[ast.Expression],
    datatypes: Mapping[str, str],
    functions: FunctionRegistry,
) -> float:
    """Return the magnitude up to which integers give expressions all their digits.

    ``datatypes`` are those of all variables. It is infinite if the expressions have no integers.

    >>> x = ast.Variable("x")
    >>> capacity([ast.Binary("*", x, x)], {"x": INTEGER}, FunctionRegistry({})) == 2.0**25
    True
    """
    if INTEGER not in datatypes.values():
        return math.inf

    def fits(greatest: float) -> bool:
        sizes = {
            name: Digits(greatest, kind=NumberKind.WHOLE) if datatype == INTEGER else DOUBLES
            for name, datatype in datatypes.items()
        }
        return all(is_exact(each, sizes, functions) for each in expressions)

    low, high = 0, int(math.log2(LIMIT))
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(2.0**middle) else (low, middle)
    return 2.0**low if low else 0.0


def fixed_scale(
    expression: ast.Expression, datatypes: Mapping[str, str], functions: FunctionRegistry
) -> int | None:
    """Return the number that an expression's exact values are whole multiples of one over.

    None if there is no such number, or if some values are doubles. All variables are integers or
    doubles.

    >>> tenth = ast.Literal("0.1", ast.XSD + "decimal")
    >>> share = ast.Binary("*", ast.Variable("x"), tenth)
    >>> fixed_scale(share, {"x": INTEGER}, FunctionRegistry({}))
    10
    """
    sizes = {
        name: Digits(1.0, kind=NumberKind.WHOLE) if datatype == INTEGER else DOUBLES
        for name, datatype in datatypes.items()
    }
    digits = fold(
        in_operators(expression, functions),
        lambda node, parts: _part(node, parts, sizes, functions),
    ).digits
    is_fixed = digits.fixed and not digits.kind & ~EXACT and digits.scale < LIMIT
    return int(digits.scale) if is_fixed else None


def _part(
    node: ast.Expression,
    parts: tuple[_Part, ...],
    variables: Mapping[str, Digits],
    functions: FunctionRegistry,
) -> _Part:
    match node:
        case ast.Variable(name):
            return _Part(variables[name], is_leaf=True)
        case ast.Literal():
            return _of_literal(node)
    need = max((part.need for part in parts), default=0.0)
    kind = kind_of(node, tuple(part.digits.kind for part in parts), functions, {})
    match node:
        case ast.Unary("+" | "-"):
            return replace(parts[0], is_leaf=False, constant=None)
        case ast.Binary("+" | "-" | "*" | "/" as operator):
            return _computed(operator, parts[0], parts[1], kind, need)
        case ast.Binary(operator) if operator in _ORDER:
            return _Part(_of_truth(), max(need, _compared(*parts)))
        case ast.In():
            compared = (_compared(parts[0], each) for each in parts[1:])
            return _Part(_of_truth(), max([need, *compared]))
        case ast.Call("if" | "coalesce" as form):
            chosen = parts[1:] if form == "if" else parts
            return _Part(reduce(_union, (each.digits for each in chosen)), need)
        case ast.Call(function) if function != "bound":
            return _called(node, parts, kind, need, functions)
        case _:
            return _Part(_of_truth(), need)


def _of_literal(literal: ast.Literal) -> _Part:
    number = number_of(literal)
    kind = kind_of(literal, (), FunctionRegistry({}), {})
    if number is None or not isinstance(number.value, Fraction):
        return _Part(Digits(kind=kind), is_leaf=True)
    top, bottom = number.value.as_integer_ratio()
    digits = Digits(nearest(abs(top)), nearest(bottom), kind=kind)
    return _Part(digits, is_leaf=True, constant=number.value)


def _of_truth() -> Digits:
    return Digits(1.0, kind=NumberKind.WHOLE)


def _computed(operator: str, left: _Part, right: _Part, kind: NumberKind, need: float) -> _Part:
    if NumberKind.SINGLE in kind:
        return _Part(Digits(kind=kind), _NOT_EXACT)
    # An exact number that meets a double becomes the nearest one.
    meet = max(_converted(left, right), _converted(right, left))
    if not kind & EXACT:
        return _Part(Digits(kind=kind), max(need, meet))
    a, b = left.digits, right.digits
    fixed = a.fixed and b.fixed and not kind & ~EXACT
    match operator:
        case "*":
            digits = Digits(_times(a.greatest, b.greatest), _times(a.scale, b.scale), fixed, kind)
        case "/":
            # A constant has one numerator.
            digits = Digits(
                _times(a.greatest, b.scale),
                _times(a.scale, max(b.greatest, 1.0)),
                fixed and right.constant is not None,
                kind,
            )
        case _:
            digits = _sum(a, b, fixed, kind)
    return _Part(digits, max(need, meet, digits.greatest, digits.scale))


def _sum(a: Digits, b: Digits, fixed: bool, kind: NumberKind) -> Digits:
    scale = common_scale(a.scale, b.scale) if fixed else _times(a.scale, b.scale)
    factors = (scale / a.scale, scale / b.scale) if math.isfinite(scale) else (1.0, 1.0)
    greatest = a.greatest * factors[0] + b.greatest * factors[1]
    return Digits(greatest, scale, fixed, kind)


def _converted(number: _Part, other: _Part) -> float:
    """Return the size of an exact number that becomes a double; a leaf is always the nearest."""
    digits = number.digits
    if number.is_leaf or not digits.kind & EXACT or not other.digits.kind & NumberKind.DOUBLE:
        return 0.0
    return max(digits.greatest, digits.scale)


def _compared(left: _Part, right: _Part) -> float:
    """Return the number that must be small for two values to compare as doubles do."""
    if not (left.digits.kind & EXACT and right.digits.kind & EXACT):
        return max(_converted(left, right), _converted(right, left))
    both = _sum(left.digits, right.digits, left.digits.fixed and right.digits.fixed, EXACT)
    return max(both.greatest, both.scale)


def _union(a: Digits, b: Digits) -> Digits:
    kind = a.kind | b.kind
    if not b.kind & EXACT:
        return replace(a, kind=kind)
    if not a.kind & EXACT:
        return replace(b, kind=kind)
    if a.fixed and b.fixed:
        both = _sum(a, b, fixed=True, kind=kind)
        return replace(both, fixed=kind & ~EXACT == NumberKind(0) or both.scale == 1.0)
    return Digits(max(a.greatest, b.greatest), max(a.scale, b.scale), False, kind)


def _called(
    call: ast.Call,
    parts: tuple[_Part, ...],
    kind: NumberKind,
    need: float,
    functions: FunctionRegistry,
) -> _Part:
    function = functions.find(call.function)
    sizes = [max(part.digits.greatest, part.digits.scale) for part in parts if not part.is_leaf]
    if function is None or function.result is ResultType.DOUBLE:
        return _Part(Digits(kind=kind), max([need, *sizes]))
    if function.exactly is not None:
        return replace(parts[0], is_leaf=False, constant=None)
    if call.function == "norm":
        return _share(parts, kind, need)
    if len(parts) > 1:
        return _Part(Digits(kind=kind), _NOT_EXACT if kind & EXACT else need)
    # A rounded value is a whole number.
    digits = parts[0].digits
    return _Part(Digits(digits.greatest, kind=kind), max(need, parts[0].distinct))


def _share(parts: tuple[_Part, ...], kind: NumberKind, need: float) -> _Part:
    value, low, high = (part.digits for part in parts)
    if NumberKind.SINGLE in kind:
        return _Part(Digits(kind=kind), _NOT_EXACT)
    if not value.kind & EXACT:
        return _Part(Digits(1.0, kind=kind), need)
    fixed = value.fixed and low.fixed and high.fixed and not kind & ~EXACT
    above, width = (_sum(each, low, fixed, kind) for each in (value, high))
    both = _sum(above, width, fixed, kind)
    need = max(need, both.greatest, both.scale)
    ends = parts[1].constant, parts[2].constant
    if not fixed or ends[0] is None or ends[1] is None:
        return _Part(Digits(both.greatest, both.greatest, False, kind), need)
    size = nearest(int(abs(ends[1] - ends[0]) * int(both.scale))) if need < LIMIT else math.inf
    return _Part(Digits(size, size, True, kind), need)


def _times(a: float, b: float) -> float:
    return 0.0 if 0.0 in (a, b) else a * b
