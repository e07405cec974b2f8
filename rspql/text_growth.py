"""Growth of texts: how long the result of an expression can be, and the texts on the way to it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from rspql import ast


@dataclass(frozen=True)
class TextGrowth:
    """Bound of a text's length: ``fixed`` characters, and ``factor`` for each of a variable's."""

    fixed: float
    factor: float

    def __add__(self, other: TextGrowth) -> TextGrowth:
        return TextGrowth(self.fixed + other.fixed, self.factor + other.factor)

    def __or__(self, other: TextGrowth) -> TextGrowth:
        """Return the bound of either of two texts."""
        return TextGrowth(max(self.fixed, other.fixed), max(self.factor, other.factor))

    def times(self, number: float) -> TextGrowth:
        """Return the bound of a text so many times as long."""
        return TextGrowth(self.fixed * number, self.factor * number)


class Grown(NamedTuple):
    """Bounds of a value's text, and of the longest text that is made on the way to it."""

    value: TextGrowth
    longest: TextGrowth


_UNBOUNDED = TextGrowth(math.inf, math.inf)
_SHORT = TextGrowth(100.0, 0.0)
"""A number, a date, a hash, or what a call may add to its arguments."""
_LONGER: Mapping[str, float] = {"encode_for_uri": 9.0, "ucase": 3.0, "lcase": 3.0}
"""Growth of a text, in bytes, by function."""
_OF_FIXED_LENGTH = frozenset(
    "abs ceil floor round strlen year month day hours minutes seconds timezone tz now md5 sha1 "
    "sha256 sha384 sha512 bound contains strstarts strends regex langmatches sameterm isblank "
    "isiri isuri isliteral isnumeric lang".split()
)


def growth_of(expression: ast.Node, known: Mapping[str, TextGrowth]) -> Grown:
    """Return the bounds of an expression; ``known`` are those of variables that are computed.

    >>> name = ast.Variable("name")
    >>> growth_of(ast.Call("concat", (name, name)), {}).value.factor
    2.0
    >>> growth_of(ast.Call("strlen", (ast.Call("replace", (name, name, name)),)), {})
    Grown(value=TextGrowth(fixed=100.0, factor=0.0), longest=TextGrowth(fixed=inf, factor=inf))
    """
    match expression:
        case ast.Variable(name):
            return _alone(known.get(name, TextGrowth(0.0, 1.0)))
        case ast.Literal(lexical):
            return _alone(TextGrowth(float(len(lexical.encode())), 0.0))
        case ast.Iri(value):
            return _alone(TextGrowth(float(len(value.encode())), 0.0))
    parts: list[Grown]
    if isinstance(expression, ast.Call):
        parts = [growth_of(each, known) for each in expression.arguments]
        base = len(expression.base or "")
        grown = _of_call(expression.function, [each.value for each in parts], base)
    else:
        parts = [growth_of(each, known) for each in ast.children(expression)]
        grown = _SHORT
    return Grown(grown, reduce(TextGrowth.__or__, (each.longest for each in parts), grown))


def _alone(growth: TextGrowth) -> Grown:
    return Grown(growth, growth)


def _of_call(function: ast.Iri | str, arguments: list[TextGrowth], base: int) -> TextGrowth:
    if isinstance(function, str) and function in _OF_FIXED_LENGTH:
        return _SHORT
    if function == "replace" and len(arguments) > 2:
        text, _, by, *_ = arguments
        # Between any two characters may stand what replaces; a reference in it is to at most all.
        return _UNBOUNDED if by.factor else (text + _SHORT).times(1.0 + by.fixed)
    whole = reduce(TextGrowth.__add__, arguments, _SHORT)
    longer = _LONGER.get(function, 1.0) if isinstance(function, str) else 1.0
    return (whole + TextGrowth(float(base), 0.0)).times(longer)
