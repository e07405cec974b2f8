"""Vectorised evaluation: a scoring expression or condition as a function over whole arrays.

The arithmetic is SPARQL's, with numbers as doubles throughout, also in comparisons: integers beyond
2^53 and decimals lose their last digits. An error is not the number NaN: COALESCE passes over
errors alone, ``NaN != 7`` is true, and NaN counts as false. A division by zero is an error for
integers and decimals, and infinite or NaN for doubles, so it depends on the types of the operands
in each row.

Columns of numbers hold NaN for an error: an unbound variable, or a value that is not a number. The
number NaN is told from it by the column's datatype or, if that is not known, by its form
(:mod:`rspql.scoring.nan`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from rspql import ast
from rspql.scoring import values
from rspql.scoring.datatypes import FLOATING, constant_value, promote
from rspql.scoring.fold import operands, postorder
from rspql.scoring.functions import BoolArray, FloatArray, FunctionRegistry, Mask
from rspql.scoring.library import DEFAULT_FUNCTIONS
from rspql.scoring.nan import is_number_nan
from rspql.scoring.types import result_type
from rspql.scoring.values import TypesNeededError, Values

Columns = Mapping[str, FloatArray]
Datatypes = Mapping[str, str]
TypesOf = Callable[[str], Mask]
"""Function that returns a mask of the rows in which a variable is an xsd:float or xsd:double."""
ScoreFunction = Callable[..., FloatArray]
"""Function of columns and, optionally, of the types of variables without a known datatype."""
ConditionFunction = Callable[..., BoolArray]

_Operation = Callable[..., FloatArray]
_NO_DATATYPES: Datatypes = {}


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
    if is_plain(expression, functions, datatypes):
        return _plain(expression, functions)
    evaluate = evaluation(expression, functions, datatypes)

    def run(columns: Columns, types: TypesOf | None = None) -> FloatArray:
        return values.as_scores(evaluate(columns, types))

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

    def run(columns: Columns, types: TypesOf | None = None) -> BoolArray:
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
        found = evaluate(columns, types)
        holds = values.truth(found)
        return np.broadcast_to(holds if found.error is False else holds & ~found.error, shape)

    return run


def needs_types(
    expression: ast.Expression,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    datatypes: Datatypes = _NO_DATATYPES,
) -> bool:
    """Return True if the types of variables without a known datatype can decide a value.

    They do where a divisor can be zero.
    """
    return any(
        _may_divide_by_zero(node) and _type_of(node, functions, datatypes) is None
        for node in postorder(expression)
    )


# Errors and NaN apart -------------------------------------------------------------------------


def evaluation(
    expression: ast.Expression, functions: FunctionRegistry, datatypes: Datatypes
) -> Callable[[Columns, TypesOf | None], Values]:
    """Return a function from columns to values, errors and types, row by row."""
    # A program for a stack machine: running it takes no recursion, however deep the expression is.
    nodes = postorder(expression)
    program = [(_operation(node, functions), len(operands(node))) for node in nodes]
    typed = [
        (_typed(node, operate), count)
        for node, (operate, count) in zip(nodes, program, strict=True)
    ]
    known = {name: datatype in FLOATING for name, datatype in datatypes.items()}

    def run(
        program: list[tuple[Callable[..., Values], int]],
        columns: Columns,
        floating: Callable[[str], Mask | None],
    ) -> Values:
        variables: dict[str, Values] = {}

        def variable(name: str) -> Values:
            if name not in variables:
                of_name = known[name] if name in known else floating(name)
                variables[name] = values.column_of(columns[name], of_name)
            return variables[name]

        stack: list[Values] = []
        with np.errstate(all="ignore"):
            for operate, count in program:
                start = len(stack) - count
                parts = stack[start:]
                del stack[start:]
                stack.append(operate(variable, *parts))
        return stack.pop()

    def evaluate(columns: Columns, types: TypesOf | None) -> Values:
        try:
            return run(program, columns, lambda _name: None)
        except TypesNeededError:
            return run(typed, columns, types or (lambda name: _looks_floating(columns[name])))

    return evaluate


def _typed(node: ast.Expression, operate: Callable[..., Values]) -> Callable[..., Values]:
    """Return an operation for operands of known types, with the zeros of its values' types."""
    if isinstance(node, ast.Binary) and node.operator == "/":
        operate = _of_parts(values.divide)
    return lambda variable, *parts: values.with_one_zero(operate(variable, *parts))


def _looks_floating(column: FloatArray) -> BoolArray:
    """Return a mask of the numbers that no integer or decimal can be."""
    return np.isinf(column) | is_number_nan(column)


def _operation(node: ast.Expression, functions: FunctionRegistry) -> Callable[..., Values]:
    """Return the operation of a node, as a function of the variables and its operands' values."""
    match node:
        case ast.Variable(name):
            return lambda variable: variable(name)
        case ast.Literal():
            constant = _constant(node)
            return lambda _variable: constant
        case ast.Unary(operator):
            return _of_parts(_UNARY[operator])
        case ast.Binary(operator):
            return _of_parts(_BINARY[operator])
        case ast.In(negated=negated):
            return _of_parts(values.not_within if negated else values.within)
        case ast.Call(function):
            return _of_parts(_function(function, functions))
        case _:
            raise TypeError(f"not a scoring expression: {node!r}")


def _constant(literal: ast.Literal) -> Values:
    return Values(np.asarray(constant_value(literal)), False, literal.datatype in FLOATING)


def _of_parts(operate: Callable[..., Values]) -> Callable[..., Values]:
    return lambda _variable, *parts: operate(*parts)


def _function(name: ast.Iri | str, functions: FunctionRegistry) -> Callable[..., Values]:
    if isinstance(name, str) and name in _FORMS:
        return _FORMS[name]
    function = functions.find(name)
    if function is None:
        raise TypeError(f"not a scoring function: {name!r}")
    return values.call(function)


_FORMS: Mapping[str, Callable[..., Values]] = {
    "if": values.choice,
    "coalesce": values.coalesce,
    "bound": values.is_bound,
}

_UNARY: Mapping[str, Callable[..., Values]] = {
    "+": values.arithmetic(np.positive),
    "-": values.arithmetic(np.negative),
    "!": values.negation,
}

_BINARY: Mapping[str, Callable[..., Values]] = {
    "+": values.arithmetic(np.add),
    "-": values.arithmetic(np.subtract),
    "*": values.arithmetic(np.multiply),
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


# Errors and NaN alike -------------------------------------------------------------------------


def is_plain(expression: ast.Expression, functions: FunctionRegistry, datatypes: Datatypes) -> bool:
    """Return True if nothing in an expression tells an error from the number NaN.

    Then both can be NaN all the way, and numpy computes with them at no cost.
    """
    return all(_is_plain(node, functions) for node in postorder(expression)) and not any(
        _may_divide_by_zero(node) for node in postorder(expression)
    )


def _is_plain(node: ast.Expression, functions: FunctionRegistry) -> bool:
    match node:
        case ast.Variable() | ast.Literal() | ast.Unary("+" | "-"):
            return True
        case ast.Binary(operator):
            return operator in _PLAIN
        case ast.Call(function):
            return function not in _FORMS and functions.find(function) is not None
        case _:
            return False


def _may_divide_by_zero(node: ast.Expression) -> bool:
    if not isinstance(node, ast.Binary) or node.operator != "/":
        return False
    return not isinstance(node.right, ast.Literal) or constant_value(node.right) == 0


def _type_of(node: ast.Expression, functions: FunctionRegistry, datatypes: Datatypes) -> str | None:
    return promote(result_type(node, datatypes, functions))


def _plain(expression: ast.Expression, functions: FunctionRegistry) -> ScoreFunction:
    program = [(_plainly(node, functions), len(operands(node))) for node in postorder(expression)]

    def run(columns: Columns, types: TypesOf | None = None) -> FloatArray:
        stack: list[FloatArray] = []
        with np.errstate(all="ignore"):
            for operate, count in program:
                start = len(stack) - count
                parts = stack[start:]
                del stack[start:]
                stack.append(operate(columns, *parts))
        return stack.pop()

    return run


def _plainly(node: ast.Expression, functions: FunctionRegistry) -> _Operation:
    match node:
        case ast.Variable(name):
            return lambda columns: columns[name]
        case ast.Literal():
            constant = np.asarray(constant_value(node))
            return lambda _columns: constant
        case ast.Unary(operator) | ast.Binary(operator):
            compute = _SIGNS[operator] if isinstance(node, ast.Unary) else _PLAIN[operator]
            return lambda _columns, *parts: compute(*parts)
        case ast.Call(function):
            found = functions.find(function)
            assert found is not None, "only plain expressions are computed plainly"
            return lambda _columns, *parts: found.apply(*parts)
        case _:
            raise TypeError(f"not a plain expression: {node!r}")


_SIGNS: Mapping[str, _Operation] = {"+": np.positive, "-": np.negative}
_PLAIN: Mapping[str, _Operation] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}
