"""Evaluation of a single row in exact digits: each number with its value and its datatype.

It is far slower than ``vectorise``, and for the few rows of an answer. Integers have any size, and
decimals any number of digits: a third is a third. Text has 18 digits after the point, as in the
SPARQL engine; further ones are cut off.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import numpy as np

from rspql import ast
from rspql.scoring.datatypes import (
    BOOLEAN,
    DECIMAL,
    DOUBLE,
    FLOAT,
    FLOATING,
    INTEGER,
    boolean_value,
    is_number,
    primitive,
    promote,
    single,
)
from rspql.scoring.fold import fold
from rspql.scoring.functions import FunctionRegistry

_PLACES = 18
_UNIT = 10**_PLACES


@dataclass(frozen=True)
class Number:
    """A number: a fraction if its datatype is exact, else a double."""

    value: Fraction | float
    datatype: str

    @property
    def is_nan(self) -> bool:
        """True for NaN."""
        return isinstance(self.value, float) and math.isnan(self.value)


Value = Number | bool | None
"""A value; None is an error."""


def number_of(literal: ast.Literal) -> Number | None:
    """Return the number that a literal stands for; None if it stands for none.

    >>> number_of(ast.Literal("0.10", DECIMAL)).value
    Fraction(1, 10)
    """
    if not is_number(literal):
        return None
    assert literal.datatype is not None
    if literal.datatype in FLOATING:
        return _typed(float(literal.lexical), literal.datatype)
    return Number(Fraction(literal.lexical), literal.datatype)


def evaluate(
    expression: ast.Expression, variables: Mapping[str, Number | None], functions: FunctionRegistry
) -> Value:
    """Return the value of an expression.

    Functions that are no SPARQL are written out, or called with the nearest doubles.

    >>> tenth = Number(Fraction(1, 10), DECIMAL)
    >>> x = ast.Variable("x")
    >>> evaluate(ast.Binary("+", x, ast.Binary("+", x, x)), {"x": tenth}, None).value
    Fraction(3, 10)
    """
    return fold(expression, lambda node, parts: _value(node, parts, variables, functions))


def holds(
    condition: ast.Expression, variables: Mapping[str, Number | None], functions: FunctionRegistry
) -> bool:
    """Return True if a condition holds for a row; an error counts as False."""
    return _truth(evaluate(condition, variables, functions)) is True


def _value(
    node: ast.Expression,
    parts: tuple[Value, ...],
    variables: Mapping[str, Number | None],
    functions: FunctionRegistry,
) -> Value:
    match node:
        case ast.Variable(name):
            return variables.get(name)
        case ast.Literal():
            return bool(boolean_value(node)) if node.datatype == BOOLEAN else number_of(node)
        case ast.Unary("!"):
            holds = _truth(parts[0])
            return None if holds is None else not holds
        case ast.Unary(sign):
            return _arithmetic(sign, Number(Fraction(0), INTEGER), parts[0], is_sign=True)
        case ast.Binary("&&" | "||" as junction, _, _):
            return _joined(junction == "||", *parts)
        case ast.Binary(compare) if compare in _COMPARE:
            return _compared(_COMPARE[compare], *parts)
        case ast.Binary(compute):
            return _arithmetic(compute, *parts)
        case ast.In(negated=negated):
            equal = (_compared(operator.eq, parts[0], each) for each in parts[1:])
            nothing: Value = None if parts[0] is None else False
            found = reduce(lambda a, b: _joined(True, a, b), equal, nothing)
            return not found if negated and found is not None else found
        case ast.Call():
            return _called(node, parts, functions)
        case _:
            raise TypeError(f"not a scoring expression: {node!r}")


def _called(call: ast.Call, parts: tuple[Value, ...], functions: FunctionRegistry) -> Value:
    match call.function:
        case "if":
            holds = _truth(parts[0])
            return None if holds is None else parts[1] if holds else parts[2]
        case "coalesce":
            return next((part for part in parts if part is not None), None)
        case "bound":
            return parts[0] is not None
    numbers = [part for part in parts if isinstance(part, Number)]
    if len(numbers) < len(parts):
        return None
    if isinstance(call.function, str) and call.function in _ROUND:
        return _rounded(call.function, numbers[0])
    function = functions.find(call.function)
    if function is None or not function.takes(len(numbers)):
        return None
    if function.expand is not None:
        given = {str(at): number for at, number in enumerate(numbers)}
        return evaluate(function.expand(*map(ast.Variable, given)), given, functions)
    with np.errstate(all="ignore"):
        values = (np.array([_converted(each, DOUBLE)]) for each in numbers)
        result = float(function.apply(*values)[0])
    return None if math.isnan(result) else Number(result, DOUBLE)


# Arithmetic -----------------------------------------------------------------------------------


def _arithmetic(compute: str, left: Value, right: Value, *, is_sign: bool = False) -> Value:
    if not isinstance(left, Number) or not isinstance(right, Number):
        return None
    datatype = promote(left.datatype, right.datatype)
    assert datatype is not None, "only numbers have values"
    if datatype in FLOATING:
        if is_sign:
            return _typed(-right.value if compute == "-" else right.value, datatype)
        a, b = (np.float64(_converted(each, datatype)) for each in (left, right))
        with np.errstate(all="ignore"):
            return _typed(float(_COMPUTE[compute](a, b)), datatype)
    if compute == "/":
        if right.value == 0:
            return None
        return Number(Fraction(left.value) / Fraction(right.value), DECIMAL)
    result = _COMPUTE[compute](left.value, right.value)
    return Number(result, datatype)


def text_of(value: Fraction) -> str:
    """Return a decimal's text, without the digits after the eighteenth.

    >>> text_of(Fraction(5, 3)), text_of(Fraction(-5, 2)), text_of(Fraction(4))
    ('1.666666666666666666', '-2.5', '4')
    """
    whole, rest = divmod(abs(math.trunc(value * _UNIT)), _UNIT)
    sign = "-" if value < 0 and (whole or rest) else ""
    return f"{sign}{whole}.{rest:0{_PLACES}}".rstrip("0").removesuffix(".")


def literal_of(number: Number) -> ast.Literal | None:
    """Return the literal of an integer or decimal; None if it has too many digits, or is another.

    >>> literal_of(Number(Fraction(1, 4), DECIMAL)).lexical
    '0.25'
    >>> literal_of(Number(Fraction(1, 3), DECIMAL)) is None
    True
    """
    if not isinstance(number.value, Fraction) or _UNIT % number.value.denominator:
        return None
    return ast.Literal(text_of(number.value), number.datatype)


def _typed(value: Fraction | float, datatype: str) -> Number:
    return Number(single(float(value)) if datatype == FLOAT else float(value), datatype)


def _converted(number: Number, datatype: str | None) -> Fraction | float:
    """Return the value that a number has in a wider type."""
    if datatype not in FLOATING:
        return number.value
    try:
        value = float(number.value)
    except OverflowError:
        value = math.copysign(math.inf, number.value)
    return single(value) if datatype == FLOAT else value


def _rounded(name: str, number: Number) -> Number:
    value, rounding, is_abs = number.value, _ROUND[name], name == "abs"
    datatype = primitive(number.datatype) or number.datatype
    if isinstance(value, float):
        if not math.isfinite(value):
            return Number(abs(value) if is_abs else value, datatype)
        sign = 1.0 if is_abs else value
        return Number(math.copysign(float(rounding(Fraction(value))), sign), datatype)
    return Number(Fraction(rounding(value)), datatype)


_COMPUTE: Mapping[str, Callable[..., Fraction]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
}
_ROUND: Mapping[str, Callable[[Fraction], int | Fraction]] = {
    "abs": abs,
    "ceil": math.ceil,
    "floor": math.floor,
    "round": lambda value: math.floor(value + Fraction(1, 2)),
}


# Conditions -----------------------------------------------------------------------------------


def _truth(value: Value) -> bool | None:
    if isinstance(value, Number):
        return value.value != 0 and not value.is_nan
    return value


def _joined(decides: bool, left: Value, right: Value) -> bool | None:
    sides = _truth(left), _truth(right)
    if decides in sides:
        return decides
    return None if None in sides else not decides


def _compared(compare: Callable[..., bool], left: Value, right: Value) -> bool | None:
    if not isinstance(left, Number) or not isinstance(right, Number):
        return None
    datatype = promote(left.datatype, right.datatype)
    return compare(_converted(left, datatype), _converted(right, datatype))


_COMPARE: Mapping[str, Callable[..., bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
