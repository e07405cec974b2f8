"""Translation of scores to plain SPARQL 1.1, for engines without this package's functions."""

from __future__ import annotations

from rspql import ast
from rspql.scoring.datatypes import DOUBLE, INTEGER, primitive
from rspql.scoring.fold import fold, operands, with_operands
from rspql.scoring.functions import SPARQL_NAMES, FunctionRegistry
from rspql.scoring.library import DEFAULT_FUNCTIONS, division_by_zero

LARGEST = 10_000
"""Maximum number of nodes of a rewritten expression: nested functions multiply their arguments."""

_ONE = ast.Literal("1.0E0", DOUBLE)


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

    With ``doubles`` all numbers are converted to doubles first, and a division by zero becomes an
    error. The engine then computes the same as ``vectorise``, also if its decimals have too few
    digits or fail. Only scores and conditions over numbers have such a form.

    >>> call = ast.Call("least", (ast.Variable("x"), ast.Variable("y")))
    >>> to_sparql(call) == ast.Call("if", (ast.Binary("<=", *call.arguments), *call.arguments))
    True
    """

    def step(
        node: ast.Expression, parts: tuple[ast.Expression | None, ...]
    ) -> ast.Expression | None:
        known = tuple(part for part in parts if part is not None)
        if len(known) < len(parts):
            return None
        plain = (
            _call(node, known, functions)
            if isinstance(node, ast.Call)
            else with_operands(node, known)
        )
        return _in_doubles(node, plain, functions) if doubles and plain is not None else plain

    return fold(expression, step)


def _call(
    call: ast.Call, arguments: tuple[ast.Expression, ...], functions: FunctionRegistry
) -> ast.Expression | None:
    function = functions.find(call.function)
    if function is None:
        return with_operands(call, arguments) if _is_sparql(call.function) else None
    if not function.takes(len(arguments)):
        return None
    if function.expand is not None:
        return _not_too_large(function.expand(*arguments))
    return (
        None
        if function.sparql is None
        else ast.Call(_callee(function.sparql), arguments, span=call.span)
    )


def _in_doubles(
    node: ast.Expression, plain: ast.Expression, functions: FunctionRegistry
) -> ast.Expression | None:
    match node:
        case ast.Variable():
            return ast.Binary("*", node, _ONE, span=node.span)
        case ast.Literal() if primitive(node.datatype):
            return ast.Literal(node.lexical, DOUBLE, span=node.span)
        case ast.Call("bound"):
            return node
        case ast.Call("if" | "coalesce"):
            return plain
        case ast.Call(function):
            return plain if functions.find(function) else None
        case ast.Aggregate() | ast.Exists():
            return None
    if isinstance(plain, ast.Binary) and plain.operator == "/":
        fails = ast.Binary("=", plain.right, ast.Literal("0", INTEGER))
        divisor = ast.Call("if", (fails, division_by_zero(), plain.right))
        return _not_too_large(ast.Binary("/", plain.left, divisor, span=node.span))
    return plain


def _is_sparql(function: ast.Iri | str) -> bool:
    return isinstance(function, ast.Iri) or function.lower() in SPARQL_NAMES


def _callee(sparql: str) -> ast.Iri | str:
    return ast.Iri(sparql) if ":" in sparql else sparql.lower()


def _not_too_large(expression: ast.Expression) -> ast.Expression | None:
    # Shared parts are counted as often as they would be written.
    pending, count = [expression], 0
    while pending:
        node = pending.pop()
        count += 1
        if count > LARGEST:
            return None
        pending.extend(operands(node))
    return expression
