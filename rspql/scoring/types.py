"""Datatypes of scores."""

from __future__ import annotations

from collections.abc import Mapping

from rspql import ast
from rspql.scoring.datatypes import BOOLEAN, DECIMAL, DOUBLE, primitive, promote, quotient
from rspql.scoring.exact import Number, evaluate, number_of
from rspql.scoring.expand import to_sparql
from rspql.scoring.fold import fold
from rspql.scoring.functions import FunctionRegistry, ResultType
from rspql.scoring.library import DEFAULT_FUNCTIONS


def result_type(
    expression: ast.Expression,
    types: Mapping[str, str],
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
) -> str | None:
    """Return the IRI of a score's datatype, given those of its variables; None if it is not known.

    Arithmetic promotes xsd:integer to xsd:decimal to xsd:float to xsd:double, and divides integers
    into a decimal. The type of an IF or COALESCE is known if all its choices have the same type.
    This is the type that SPARQL gives the value; the ranking itself uses doubles.

    >>> share = ast.Binary("/", ast.Variable("x"), ast.Literal("2", ast.XSD + "integer"))
    >>> result_type(share, {"x": ast.XSD + "integer"})
    'http://www.w3.org/2001/XMLSchema#decimal'
    """
    return fold(expression, lambda node, parts: _type_of(node, parts, types, functions))


def type_of_value(
    expression: ast.Expression,
    variables: Mapping[str, ast.Literal],
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
) -> str | None:
    """Return the IRI of a score's datatype for one row; None if it has none or is not known.

    The type of an IF or COALESCE is that of the choice that the row takes.

    >>> choice = ast.Call("coalesce", (ast.Variable("x"), ast.Literal("2.5", ast.XSD + "decimal")))
    >>> type_of_value(choice, {"x": ast.Literal("7", ast.XSD + "integer")})
    'http://www.w3.org/2001/XMLSchema#integer'
    """
    types = {name: each.datatype for name, each in variables.items()}
    known = result_type(
        expression, {name: each for name, each in types.items() if each is not None}, functions
    )
    plain = to_sparql(expression, functions) if known is None else None
    if plain is None:
        return known
    numbers = {name: number_of(literal) for name, literal in variables.items()}
    value = evaluate(plain, numbers, functions)
    return value.datatype if isinstance(value, Number) else None


def _type_of(
    node: ast.Expression,
    parts: tuple[str | None, ...],
    types: Mapping[str, str],
    functions: FunctionRegistry,
) -> str | None:
    match node:
        case ast.Variable(name):
            return types.get(name)
        case ast.Literal():
            return node.datatype
        case ast.Unary("+" | "-"):
            return primitive(parts[0])
        case ast.Binary("+" | "-" | "*"):
            return promote(*parts)
        case ast.Binary("/"):
            return quotient(*parts)
        case ast.Unary() | ast.Binary() | ast.In() | ast.Call("bound"):
            return BOOLEAN
        case ast.Call("if"):
            return _common(parts[1:])
        case ast.Call("coalesce"):
            return _common(parts)
        case ast.Call():
            return _type_of_call(node, parts, functions)
        case _:
            return None


def _type_of_call(
    call: ast.Call, parts: tuple[str | None, ...], functions: FunctionRegistry
) -> str | None:
    function = functions.find(call.function)
    if function is None or not function.takes(len(parts)):
        return None
    match function.result:
        case ResultType.ARGUMENT:
            return promote(*parts) if len(parts) == 1 else _common(parts)
        case ResultType.QUOTIENT:
            # Where it clamps, the value is a decimal, whatever its arguments.
            datatype = quotient(promote(*parts), promote(*parts[1:]))
            return datatype if datatype == DECIMAL else None
        case ResultType.DOUBLE:
            return DOUBLE


def _common(parts: tuple[str | None, ...]) -> str | None:
    return parts[0] if len(set(parts)) == 1 else None
