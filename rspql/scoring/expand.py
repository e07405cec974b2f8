"""A score in plain SPARQL 1.1, for engines that know nothing of this package's functions."""

from __future__ import annotations

from rspql import ast
from rspql.scoring.datatypes import DOUBLE, INTEGER, primitive
from rspql.scoring.fold import fold, operands, with_operands
from rspql.scoring.functions import SPARQL_NAMES, FunctionRegistry
from rspql.scoring.library import DEFAULT_FUNCTIONS, division_by_zero

LARGEST = 10_000
"""How many nodes a rewritten expression may have: functions within functions multiply their arguments."""

_ONE = ast.Literal("1.0E0", DOUBLE)


def to_sparql(
    expression: ast.Expression, functions: FunctionRegistry = DEFAULT_FUNCTIONS, doubles: bool = False
) -> ast.Expression | None:
    """Return the expression with nothing in it but what SPARQL 1.1 engines know or can be taught by IRI.

    ``norm``, ``least`` and ``greatest`` are written out with IF, and give an error where they do;
    ``sqrt``, ``log``, ``exp`` and ``pow`` become calls of XPath's math functions, which an engine
    may have to be given as custom functions. What is no scoring function stays as it is. None
    means that a function has no such form, as one's own have not, or that it would be too large.

    Where norm clamps, its value is a decimal 0 or 1, whatever the types of its arguments.

    With ``doubles`` all numbers are brought to doubles first, and a division by zero is made an
    error: so the engine computes what ``vectorise`` does, also where its decimals have too few
    digits or it gives up on them. Then only scores and conditions over numbers have a form.

    >>> call = ast.Call("least", (ast.Variable("x"), ast.Variable("y")))
    >>> to_sparql(call) == ast.Call("if", (ast.Binary("<=", *call.arguments), *call.arguments))
    True
    """

    def step(node: ast.Expression, parts: tuple[ast.Expression | None, ...]) -> ast.Expression | None:
        known = tuple(part for part in parts if part is not None)
        if len(known) < len(parts):
            return None
        plain = _call(node, known, functions) if isinstance(node, ast.Call) else with_operands(node, known)
        return _in_doubles(node, plain, functions) if doubles and plain is not None else plain

    return fold(expression, step)


def _call(call: ast.Call, arguments: tuple[ast.Expression, ...], functions: FunctionRegistry) -> ast.Expression | None:
    function = functions.find(call.function)
    if function is None:
        return with_operands(call, arguments) if _is_sparql(call.function) else None
    if not function.takes(len(arguments)):
        return None
    if function.expand is not None:
        return _not_too_large(function.expand(*arguments))
    return None if function.sparql is None else ast.Call(_callee(function.sparql), arguments, span=call.span)


def _in_doubles(node: ast.Expression, plain: ast.Expression, functions: FunctionRegistry) -> ast.Expression | None:
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
    # What is shared is counted as often as it would be written.
    pending, count = [expression], 0
    while pending:
        node = pending.pop()
        count += 1
        if count > LARGEST:
            return None
        pending.extend(operands(node))
    return expression
