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
from rspql.scoring.fold import operands, postorder
from rspql.scoring.functions import FunctionRegistry, ScoringFunction

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
Variables = Mapping[str, Number | None]
Evaluate = Callable[[Variables], Value]


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


def compiled(expression: ast.Expression, functions: FunctionRegistry) -> Evaluate:
    """Return a function from variables' numbers to the value of an expression.

    Functions that are no SPARQL are written out, or called with the nearest doubles.

    >>> run = compiled(ast.Binary("*", ast.Variable("x"), ast.Literal("0.1", DECIMAL)), None)
    >>> run({"x": Number(Fraction(3), INTEGER)}).value
    Fraction(3, 10)
    """
    program: list[tuple[Callable[..., Value], int]] = []
    is_constant: list[bool] = []
    for node in postorder(expression):
        operate, count = _operation(node, functions), len(operands(node))
        start = len(is_constant) - count
        constant = not isinstance(node, ast.Variable) and all(is_constant[start:])
        del is_constant[start:]
        is_constant.append(constant)
        if constant and count:
            parts = [of({}) for of, _ in program[len(program) - count :]]
            del program[len(program) - count :]
            operate, count = _always(operate({}, *parts)), 0
        program.append((operate, count))

    def run(variables: Variables) -> Value:
        stack: list[Value] = []
        for operate, count in program:
            start = len(stack) - count
            parts = stack[start:]
            del stack[start:]
            stack.append(operate(variables, *parts))
        return stack.pop()

    return run


def evaluate(
    expression: ast.Expression, variables: Variables, functions: FunctionRegistry
) -> Value:
    """Return the value of an expression, as :func:`compiled` computes it.

    >>> tenth = Number(Fraction(1, 10), DECIMAL)
    >>> x = ast.Variable("x")
    >>> evaluate(ast.Binary("+", x, ast.Binary("+", x, x)), {"x": tenth}, None).value
    Fraction(3, 10)
    """
    return compiled(expression, functions)(variables)


def compiled_condition(
    condition: ast.Expression, functions: FunctionRegistry
) -> Callable[[Variables], bool]:
    """Return a function that says if a condition holds for variables; an error counts as False."""
    run = compiled(condition, functions)
    return lambda variables: truth(run(variables)) is True


def holds(condition: ast.Expression, variables: Variables, functions: FunctionRegistry) -> bool:
    """Return True if a condition holds for a row; an error counts as False."""
    return compiled_condition(condition, functions)(variables)


def _operation(node: ast.Expression, functions: FunctionRegistry) -> Callable[..., Value]:
    """Return the operation of a node, as a function of the variables and its operands' values."""
    match node:
        case ast.Variable(name):
            return lambda variables: variables.get(name)
        case ast.Literal():
            of_literal = bool(boolean_value(node)) if node.datatype == BOOLEAN else number_of(node)
            return _always(of_literal)
        case ast.Unary("!"):
            return lambda _, value: _negated(value)
        case ast.Unary(sign):
            zero = Number(Fraction(0), INTEGER)
            return lambda _, value: _arithmetic(sign, zero, value, is_sign=True)
        case ast.Binary("&&" | "||" as junction, _, _):
            decides = junction == "||"
            return lambda _, left, right: _joined(decides, left, right)
        case ast.Binary(compare) if compare in _COMPARE:
            order = _COMPARE[compare]
            return lambda _, left, right: _compared(order, left, right)
        case ast.Binary(compute):
            return lambda _, left, right: _arithmetic(compute, left, right)
        case ast.In(negated=negated):
            return lambda _, value, *choices: _within(value, choices, negated)
        case ast.Call():
            return _call(node, functions)
        case _:
            raise TypeError(f"not a scoring expression: {node!r}")


def _always(value: Value) -> Callable[..., Value]:
    return lambda _: value


def _negated(value: Value) -> Value:
    holds = truth(value)
    return None if holds is None else not holds


def _within(value: Value, choices: tuple[Value, ...], negated: bool) -> Value:
    equal = (_compared(operator.eq, value, each) for each in choices)
    nothing: Value = None if value is None else False
    found = reduce(lambda a, b: _joined(True, a, b), equal, nothing)
    return not found if negated and found is not None else found


def _call(call: ast.Call, functions: FunctionRegistry) -> Callable[..., Value]:
    match call.function:
        case "if":
            return lambda _, condition, then, otherwise: _chosen(condition, then, otherwise)
        case "coalesce":
            return lambda _, *parts: next((part for part in parts if part is not None), None)
        case "bound":
            return lambda _, value: value is not None
        case "abs" | "ceil" | "floor" | "round" as name:
            return _of_numbers(lambda number: _rounded(name, number))
    function = functions.find(call.function)
    if function is None or not function.takes(len(call.arguments)):
        return lambda _, *parts: None
    if function.expand is None:
        return _of_numbers(lambda *numbers: _applied(function, numbers))
    names = [str(at) for at in range(len(call.arguments))]
    written = compiled(
        function.expand(
            *(
                each if isinstance(each, ast.Literal) else ast.Variable(name)
                for name, each in zip(names, call.arguments, strict=True)
            )
        ),
        functions,
    )
    return _of_numbers(lambda *numbers: written(dict(zip(names, numbers, strict=True))))


def _of_numbers(compute: Callable[..., Value]) -> Callable[..., Value]:
    """Return an operation that is an error if an operand is no number."""
    return lambda _, *parts: (
        compute(*parts) if all(isinstance(part, Number) for part in parts) else None
    )


def _chosen(condition: Value, then: Value, otherwise: Value) -> Value:
    holds = truth(condition)
    return None if holds is None else then if holds else otherwise


def _applied(function: ScoringFunction, numbers: tuple[Number, ...]) -> Value:
    values = (np.array([_converted(each, DOUBLE)]) for each in numbers)
    with np.errstate(all="ignore"):
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


def truth(value: Value) -> bool | None:
    """Return the truth value that SPARQL gives a value; None for an error."""
    if isinstance(value, Number):
        return value.value != 0 and not value.is_nan
    return value


def _joined(decides: bool, left: Value, right: Value) -> bool | None:
    sides = truth(left), truth(right)
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
