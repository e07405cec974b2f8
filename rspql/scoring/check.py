"""What a scoring expression needs, and whether it is one that can be computed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rspql import ast
from rspql.diagnostics import Diagnostic, nearest
from rspql.scoring.functions import FUNCTIONS

ARITHMETIC = ("+", "-", "*", "/")
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?"
_NUMERIC = frozenset(ast.XSD + name for name in ("integer", "decimal", "double"))


def variables_in(expression: ast.Expression) -> dict[str, ast.Span | None]:
    """Return the names of an expression's variables, in order, with where each first stands."""
    names: dict[str, ast.Span | None] = {}
    for node in _walk(expression):
        if isinstance(node, ast.Variable):
            names.setdefault(node.name, node.span)
    return names


def check_expression(expression: ast.Expression, found: list[Diagnostic]) -> None:
    """Append to ``found`` whatever in the expression cannot be part of a score."""
    for node in _walk(expression):
        problem = _problem(node)
        if problem:
            message, hint = problem
            found.append(Diagnostic("score", message, node.span, hint))


def _walk(expression: ast.Expression) -> Iterator[ast.Expression]:
    yield expression
    for child in _children(expression):
        yield from _walk(child)


def _children(expression: ast.Expression) -> tuple[ast.Expression, ...]:
    match expression:
        case ast.Unary():
            return (expression.operand,)
        case ast.Binary():
            return (expression.left, expression.right)
        case ast.Call():
            return expression.arguments
        case _:
            return ()


def _problem(node: ast.Expression) -> tuple[str, str | None] | None:
    match node:
        case ast.Call():
            return _call_problem(node)
        case ast.Binary() if node.operator not in ARITHMETIC:
            return f"{node.operator} does not give a number, so it cannot be part of a score", None
        case ast.Unary() if node.operator == "!":
            return "! does not give a number, so it cannot be part of a score", None
        case ast.Iri():
            return f"<{node.value}> is not a number, so it cannot be part of a score", None
        case ast.Literal() if node.datatype not in _NUMERIC or not re.fullmatch(_NUMBER, node.lexical):
            return f'"{node.lexical}" is not a number, so it cannot be part of a score', None
        case _:
            return None


def _constant(expression: ast.Expression) -> float | None:
    return float(expression.lexical) if isinstance(expression, ast.Literal) and not _problem(expression) else None


def _call_problem(call: ast.Call) -> tuple[str, str | None] | None:
    name = call.function.value if isinstance(call.function, ast.Iri) else call.function
    function = FUNCTIONS.get(name.lower())
    if function is None:
        near = nearest(name.lower(), FUNCTIONS)
        known = ", ".join(sorted(known.signature for known in FUNCTIONS.values()))
        hint = f"did you mean {FUNCTIONS[near].signature}?" if near else f"known are {known}"
        return f"there is no scoring function {name}", hint
    if len(call.arguments) != function.arity:
        given = len(call.arguments)
        return f"{name} takes {function.arity} arguments, not {given}", f"write {function.signature}"
    low, high = [_constant(each) for each in call.arguments[1:]] if name.lower() == "norm" else (None, None)
    if low is not None and high is not None and not low < high:
        return f"the range of norm from {low:g} to {high:g} is empty", f"write {function.signature}"
    return None
