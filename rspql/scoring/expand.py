"""Translation of scores to plain SPARQL 1.1, for engines without this package's functions."""

from __future__ import annotations

from rspql import ast
from rspql.scoring.exact import Number, evaluate, literal_of
from rspql.scoring.fold import fold, with_operands
from rspql.scoring.functions import SPARQL_NAMES, FunctionRegistry
from rspql.scoring.in_doubles import in_doubles, is_within
from rspql.scoring.library import DEFAULT_FUNCTIONS

LARGEST = 10_000
"""Maximum number of nodes of a rewritten expression: nested functions multiply their arguments."""


def to_sparql(
    expression: ast.Expression,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    doubles: bool = False,
) -> ast.Expression | None:
    """Return the expression in plain SPARQL 1.1, with only functions that engines can know.

    ``norm``, ``least`` and ``greatest`` are written out with IF; the result is an error whenever
    they give one. ``sqrt``, ``log``, ``exp`` and ``pow`` become calls of XPath's math functions;
    some engines need them as custom functions. Calls of functions that are not scoring functions
    stay as they are. None means that a function has no such form, as user functions have none, or
    that the result would be too large.

    Where norm clamps, its value is a decimal 0 or 1, whatever the types of its arguments.

    With ``doubles`` all numbers are converted to doubles first (:mod:`rspql.scoring.in_doubles`).
    Only scores and conditions over numbers have such a form.

    >>> call = ast.Call("exp", (ast.Variable("x"),))
    >>> to_sparql(call).function.value
    'http://www.w3.org/2005/xpath-functions/math#exp'
    """

    def step(
        node: ast.Expression, parts: tuple[ast.Expression | None, ...]
    ) -> ast.Expression | None:
        known = tuple(part for part in parts if part is not None)
        if len(known) < len(parts):
            return None
        if isinstance(node, ast.Call):
            return _call(node, known, functions)
        return with_operands(node, known)

    plain = fold(expression, step)
    return in_doubles(plain, functions, LARGEST) if doubles and plain is not None else plain


def in_operators(expression: ast.Expression, functions: FunctionRegistry) -> ast.Expression:
    """Return the expression with constants computed, and functions but norm written out.

    Those that cannot be written out, or would get too large, stay as they are.

    >>> share = ast.Call("norm", (ast.Variable("x"), ast.Literal("0"), ast.Literal("5")))
    >>> in_operators(share, DEFAULT_FUNCTIONS).function
    'norm'
    """

    def step(node: ast.Expression, parts: tuple[ast.Expression, ...]) -> ast.Expression:
        plain = with_operands(node, parts)
        if isinstance(node, ast.Call) and node.function == "norm":
            return plain
        function = functions.find(node.function) if isinstance(node, ast.Call) else None
        if function is None or function.expand is None or not function.takes(len(parts)):
            return plain
        expanded = function.expand(*parts)
        return expanded if is_within(LARGEST, expanded) else plain

    return fold(fold(expression, step), _with_constants)


def _with_constants(node: ast.Expression, parts: tuple[ast.Expression, ...]) -> ast.Expression:
    """Return a node, or the number that arithmetic on integers and decimals alone makes."""
    plain = with_operands(node, parts)
    is_arithmetic = isinstance(node, ast.Unary | ast.Binary) and node.operator in "+-*/"
    if not is_arithmetic or not all(isinstance(part, ast.Literal) for part in parts):
        return plain
    value = evaluate(plain, {}, DEFAULT_FUNCTIONS)
    found = literal_of(value) if isinstance(value, Number) else None
    return plain if found is None else found


def _call(
    call: ast.Call, arguments: tuple[ast.Expression, ...], functions: FunctionRegistry
) -> ast.Expression | None:
    function = functions.find(call.function)
    if function is None:
        return with_operands(call, arguments) if _is_sparql(call.function) else None
    if not function.takes(len(arguments)):
        return None
    if function.expand is not None:
        expanded = function.expand(*arguments)
        return expanded if is_within(LARGEST, expanded) else None
    return (
        None
        if function.sparql is None
        else ast.Call(_callee(function.sparql), arguments, span=call.span)
    )


def _is_sparql(function: ast.Iri | str) -> bool:
    return isinstance(function, ast.Iri) or function.lower() in SPARQL_NAMES


def _callee(sparql: str) -> ast.Iri | str:
    return ast.Iri(sparql) if ":" in sparql else sparql.lower()
