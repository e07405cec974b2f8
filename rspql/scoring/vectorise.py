"""Vectorised evaluation: a scoring expression or condition as a function over whole arrays.

The arithmetic is SPARQL's. Integers and decimals are ratios of whole numbers, and their scores the
nearest doubles, as long as these whole numbers are small enough (:mod:`rspql.scoring.capacity`);
beyond that they lose their last digits. An xsd:float has a double's precision.

An error is not the number NaN: COALESCE passes over errors alone, ``NaN != 7`` is true, and NaN
counts as false. A division by zero is an error for integers and decimals, and infinite or NaN for
doubles, so it depends on the types of the operands in each row.

Columns of numbers hold NaN for an error: an unbound variable, or a value that is not a number. The
number NaN is told from it by the column's datatype or, if that is not known, by its form
(:mod:`rspql.scoring.nan`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction

import numpy as np

from rspql import ast
from rspql.scoring import ratios, values
from rspql.scoring.clamped import clamped_for_decimals
from rspql.scoring.datatypes import FLOATING, constant_value, promote
from rspql.scoring.exact import number_of
from rspql.scoring.expand import in_operators
from rspql.scoring.fold import operands, postorder
from rspql.scoring.functions import (
    BoolArray,
    FloatArray,
    FunctionRegistry,
    Mask,
    ResultType,
    ScoringFunction,
)
from rspql.scoring.kinds import needs_ratios
from rspql.scoring.library import DEFAULT_FUNCTIONS
from rspql.scoring.nan import is_number_nan
from rspql.scoring.plain import (
    FORMS,
    has_plain_errors,
    may_divide_by_zero,
    plainly,
    plainly_unless_clamped,
)
from rspql.scoring.types import result_type
from rspql.scoring.values import TypedColumn, TypesNeededError

Columns = Mapping[str, FloatArray]
Datatypes = Mapping[str, str]
TypesOf = Callable[[str], Mask]
"""Function that returns a mask of the rows in which a variable is an xsd:float or xsd:double."""
Ratios = Mapping[str, ratios.Ratio]
"""Decimals by variable; what a column has for them are the nearest doubles."""
ScoreFunction = Callable[..., FloatArray]
"""Function of columns and, optionally, of the types of variables without a known datatype.

Its third argument has the decimals.
"""
ConditionFunction = Callable[..., BoolArray]

_Operation = Callable[..., FloatArray]
_LARGE = 2.0**60
_NO_DATATYPES: Datatypes = {}
_NO_RATIOS: Ratios = {}


def vectorise(
    expression: ast.Expression,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    datatypes: Datatypes = _NO_DATATYPES,
) -> ScoreFunction:
    """Return a function from columns of numbers to a column of scores.

    It returns a single score if the expression needs no column. NaN stands for an error, and for a
    score that is the number NaN. A row whose score is NaN is not a solution.

    ``datatypes`` are those of variables that have the same one in every row. Of other variables the
    returned function asks its second argument, if it divides by zero; without it they are exact.

    >>> score = vectorise(ast.Binary("*", ast.Literal("2", ast.XSD + "integer"), ast.Variable("x")))
    >>> score({"x": np.array([1.0, np.nan, 3.0])})
    array([ 2., nan,  6.])
    """
    if has_plain_errors(expression, functions):
        if not needs_ratios(expression, functions, datatypes):
            return plainly(expression, functions)
        count = clamped_for_decimals(expression, functions, datatypes)
        if count is not None:
            in_ratios = _with_errors(expression, functions, datatypes)
            return plainly_unless_clamped(expression, functions, count, in_ratios)
    return _with_errors(expression, functions, datatypes)


def _with_errors(
    expression: ast.Expression, functions: FunctionRegistry, datatypes: Datatypes
) -> ScoreFunction:
    evaluate = evaluation(expression, functions, datatypes)

    def run(
        columns: Columns, types: TypesOf | None = None, decimals: Ratios = _NO_RATIOS
    ) -> FloatArray:
        return values.as_scores(evaluate(columns, types, decimals))

    return run


def vectorise_condition(
    expression: ast.Expression,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    datatypes: Datatypes = _NO_DATATYPES,
) -> ConditionFunction:
    """Return a function from columns of numbers to booleans: True if the condition holds.

    An error counts as False.

    >>> condition = ast.Binary(">", ast.Variable("x"), ast.Literal("2", ast.XSD + "integer"))
    >>> vectorise_condition(condition)({"x": np.array([1.0, np.nan, 3.0])})
    array([False, False,  True])
    """
    evaluate = evaluation(expression, functions, datatypes)

    def run(
        columns: Columns, types: TypesOf | None = None, decimals: Ratios = _NO_RATIOS
    ) -> BoolArray:
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
        found = evaluate(columns, types, decimals)
        holds = values.truth(found)
        return np.broadcast_to(holds if found.error is False else holds & ~found.error, shape)

    return run


def needs_types(
    expression: ast.Expression,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    datatypes: Datatypes = _NO_DATATYPES,
) -> bool:
    """Return True if the types of variables without a known datatype can decide a value.

    They do where a divisor can be zero, and in arithmetic that may be one of decimals.
    """
    if needs_ratios(expression, functions, datatypes) and any(
        isinstance(node, ast.Variable) and node.name not in datatypes
        for node in postorder(expression)
    ):
        return True
    return any(
        may_divide_by_zero(node) and _type_of(node, functions, datatypes) is None
        for node in postorder(expression)
    )


# Errors and NaN apart -------------------------------------------------------------------------


def evaluation(
    expression: ast.Expression, functions: FunctionRegistry, datatypes: Datatypes
) -> Callable[..., TypedColumn]:
    """Return a function from columns to values, errors and types, row by row.

    Rows with numbers whose ratios could leave the range of doubles are computed in doubles.
    """
    if not needs_ratios(expression, functions, datatypes):
        return _evaluation(expression, functions, datatypes, in_ratios=False)
    in_ratios = _evaluation(expression, functions, datatypes, in_ratios=True)
    in_doubles = _evaluation(expression, functions, datatypes, in_ratios=False)
    names = {node.name for node in postorder(expression) if isinstance(node, ast.Variable)}

    def evaluate(
        columns: Columns, types: TypesOf | None, decimals: Ratios = _NO_RATIOS
    ) -> TypedColumn:
        found = in_ratios(columns, types, decimals)
        wide = _wide(columns, names)
        return found if wide is None else values.where(wide, in_doubles(columns, types), found)

    return evaluate


def _wide(columns: Columns, names: Collection[str]) -> BoolArray | None:
    """Return a mask of the rows with a number that is very large or small; None if there is none.

    Products and quotients of some fifteen others stay within the doubles.
    """
    wide: BoolArray | None = None
    for name in names:
        size = np.abs(columns[name])
        large, small = size > _LARGE, size < 1 / _LARGE
        small &= size > 0
        if large.any() or small.any():
            wide = large | small if wide is None else wide | large | small
    return wide


def _evaluation(
    expression: ast.Expression,
    functions: FunctionRegistry,
    datatypes: Datatypes,
    *,
    in_ratios: bool,
) -> Callable[..., TypedColumn]:
    if in_ratios:
        expression = in_operators(expression, functions)
    # A program for a stack machine: running it takes no recursion, however deep the expression is.
    nodes = postorder(expression)
    program = [(_operation(node, functions, in_ratios), len(operands(node))) for node in nodes]
    has_signs = any(_tells_zeros_apart(node, functions) for node in nodes)
    typed = [
        (_typed(node, operate, in_ratios, has_signs), count)
        for node, (operate, count) in zip(nodes, program, strict=True)
    ]
    known = {name: datatype in FLOATING for name, datatype in datatypes.items()}
    asks_types = in_ratios and any(
        isinstance(node, ast.Variable) and node.name not in known for node in nodes
    )

    def run(
        program: list[tuple[Callable[..., TypedColumn], int]],
        columns: Columns,
        floating: Callable[[str], Mask | None],
        decimals: Ratios,
    ) -> TypedColumn:
        variables: dict[str, TypedColumn] = {}

        def variable(name: str) -> TypedColumn:
            if name not in variables:
                of_name = known[name] if name in known else floating(name)
                column = values.column_of(columns[name], of_name)
                if in_ratios and name in decimals:
                    column = values.ratio_column(column, decimals[name])
                variables[name] = column
            return variables[name]

        stack: list[TypedColumn] = []
        with np.errstate(all="ignore"):
            for operate, count in program:
                start = len(stack) - count
                parts = stack[start:]
                del stack[start:]
                stack.append(operate(variable, *parts))
        return stack.pop()

    def evaluate(
        columns: Columns, types: TypesOf | None, decimals: Ratios = _NO_RATIOS
    ) -> TypedColumn:
        told = types or (lambda name: _looks_floating(columns[name]))
        if asks_types:
            return run(typed, columns, lambda name: values.as_mask(told(name)), decimals)
        try:
            return run(program, columns, lambda _name: None, decimals)
        except TypesNeededError:
            return run(typed, columns, told, decimals)

    return evaluate


def _typed(
    node: ast.Expression, operate: Callable[..., TypedColumn], in_ratios: bool, has_signs: bool
) -> Callable[..., TypedColumn]:
    """Return an operation for operands of known types.

    If zeros can have signs that matter, its values have the zeros of their types.
    """
    if isinstance(node, ast.Binary) and node.operator == "/":
        operate = _of_parts(values.divide if in_ratios else values.divide_doubles)
    if not (has_signs and _may_make_negative_zero(node)):
        return operate
    return lambda variable, *parts: values.with_one_zero(operate(variable, *parts))


def _tells_zeros_apart(node: ast.Expression, functions: FunctionRegistry) -> bool:
    """Return True if a node's value for a zero can depend on its sign."""
    match node:
        case ast.Binary("/"):
            return True
        case ast.Call(name) if name not in FORMS:
            function = functions.find(name)
            return function is None or function.result is ResultType.DOUBLE
        case _:
            return False


def _may_make_negative_zero(node: ast.Expression) -> bool:
    match node:
        case ast.Variable() | ast.Unary("-") | ast.Binary("*" | "/"):
            return True
        case ast.Call(function):
            return function not in FORMS
        case _:
            return False


def _looks_floating(column: FloatArray) -> BoolArray:
    """Return a mask of the numbers that no integer or decimal can be."""
    return np.isinf(column) | is_number_nan(column)


def _operation(
    node: ast.Expression, functions: FunctionRegistry, in_ratios: bool
) -> Callable[..., TypedColumn]:
    """Return the operation of a node, as a function of the variables and its operands' values."""
    match node:
        case ast.Variable(name):
            return lambda variable: variable(name)
        case ast.Literal():
            constant = _ratio_constant(node) if in_ratios else _constant(node)
            return lambda _variable: constant
        case ast.Unary(operator):
            return _of_parts(_UNARY[operator])
        case ast.Binary("/") if in_ratios:
            return _of_parts(values.divide_ratios_by_no_zero)
        case ast.Binary(operator):
            return _of_parts(_BINARY[operator])
        case ast.In(negated=negated):
            return _of_parts(values.not_within if negated else values.within)
        case ast.Call("norm") if in_ratios:
            return _of_parts(_share(node, functions["norm"]))
        case ast.Call(function):
            return _of_parts(_function(function, functions))
        case _:
            raise TypeError(f"not a scoring expression: {node!r}")


def _constant(literal: ast.Literal) -> TypedColumn:
    return TypedColumn(np.asarray(constant_value(literal)), False, literal.datatype in FLOATING)


def _ratio_constant(literal: ast.Literal) -> TypedColumn:
    number = number_of(literal)
    if number is None or literal.datatype in FLOATING:
        return _constant(literal)
    assert isinstance(number.value, Fraction), "only floating numbers are no fractions"
    numbers, scale = ratios.constant(number.value)
    return TypedColumn(numbers, False, False, scale)


def _share(node: ast.Call, function: ScoringFunction) -> Callable[..., TypedColumn]:
    low, high = (_exact_constant(each) for each in node.arguments[1:])
    if low is None or high is None or not low < high:
        return values.share(function)
    return values.share_between(function, low, high)


def _exact_constant(expression: ast.Expression) -> Fraction | None:
    number = number_of(expression) if isinstance(expression, ast.Literal) else None
    return number.value if number is not None and isinstance(number.value, Fraction) else None


def _of_parts(operate: Callable[..., TypedColumn]) -> Callable[..., TypedColumn]:
    return lambda _variable, *parts: operate(*parts)


def _function(name: ast.Iri | str, functions: FunctionRegistry) -> Callable[..., TypedColumn]:
    if isinstance(name, str) and name in FORMS:
        return _FORMS[name]
    function = functions.find(name)
    if function is None:
        raise TypeError(f"not a scoring function: {name!r}")
    return values.call(function)


_FORMS: Mapping[str, Callable[..., TypedColumn]] = {
    "if": values.choice,
    "coalesce": values.coalesce,
    "bound": values.is_bound,
}

_UNARY: Mapping[str, Callable[..., TypedColumn]] = {
    "+": values.arithmetic(np.positive, ratios.sign_of(np.positive)),
    "-": values.arithmetic(np.negative, ratios.sign_of(np.negative)),
    "!": values.negation,
}

_BINARY: Mapping[str, Callable[..., TypedColumn]] = {
    "+": values.arithmetic(np.add, ratios.sum_of(np.add)),
    "-": values.arithmetic(np.subtract, ratios.sum_of(np.subtract)),
    "*": values.arithmetic(np.multiply, ratios.multiply),
    "/": values.divide_by_no_zero,
    "=": values.equal,
    "!=": values.comparison(np.not_equal),
    "<": values.comparison(np.less),
    "<=": values.comparison(np.less_equal),
    ">": values.comparison(np.greater),
    ">=": values.comparison(np.greater_equal),
    "&&": values.conjunction,
    "||": values.disjunction,
}


def _type_of(node: ast.Expression, functions: FunctionRegistry, datatypes: Datatypes) -> str | None:
    return promote(result_type(node, datatypes, functions))
