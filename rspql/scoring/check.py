"""Checks of scoring expressions: the variables needed, and the parts that cannot be computed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from rspql import ast
from rspql.diagnostics import Diagnostic, nearest
from rspql.scoring.datatypes import boolean_value, is_number, literal_value
from rspql.scoring.fold import operands
from rspql.scoring.functions import FunctionRegistry
from rspql.scoring.library import DEFAULT_FUNCTIONS, FUNCTIONS

_ARITHMETIC = ("+", "-", "*", "/")
_LOGIC = ("&&", "||")
_FORMS = {
    "if": "IF(condition, then, otherwise)",
    "coalesce": "COALESCE(value, …)",
    "bound": "BOUND(?variable)",
}

_Problem = tuple[str, str | None]


def variables_in(expression: ast.Expression) -> dict[str, ast.Span | None]:
    """Return the names of an expression's variables in order, with the first place of each.

    Includes the variables of patterns in ``EXISTS``.
    """
    names: dict[str, ast.Span | None] = {}
    for node in ast.walk(expression):
        if isinstance(node, ast.Variable):
            names.setdefault(node.name, node.span)
    return names


def check_expression(
    expression: ast.Expression,
    found: list[Diagnostic],
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
) -> None:
    """Append to ``found`` every part of the expression that cannot be part of a score.

    >>> found = []
    >>> check_expression(ast.Call("nrom", (ast.Variable("x"),)), found)
    >>> found[0].message, found[0].hint
    ('there is no scoring function nrom', 'did you mean norm(value, low, high)?')
    """
    found.extend(_Check("score", functions).problems(expression, condition=False))


def check_condition(
    expression: ast.Expression,
    found: list[Diagnostic],
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
) -> None:
    """Append to ``found`` every part that keeps the expression from being a condition over numbers.

    If nothing is found, the expression can be given to ``vectorise_condition``.
    """
    found.extend(_Check("condition", functions).problems(expression, condition=True))


@dataclass(frozen=True)
class _Check:
    """The rules for one purpose: ``score`` or ``condition``, also the diagnostics' code."""

    purpose: str
    functions: FunctionRegistry

    def problems(self, expression: ast.Expression, condition: bool) -> Iterator[Diagnostic]:
        """Yield the problems in source order.

        The place of each part decides if it must be a condition or a number.
        """
        pending = [(expression, condition)]
        while pending:
            node, condition = pending.pop()
            problem = self._problem(node, condition)
            if problem:
                message, hint = problem
                yield Diagnostic(self.purpose, message, node.span, hint)
            pending.extend(reversed(list(_wanted(node, condition))))

    def _problem(self, node: ast.Expression, condition: bool) -> _Problem | None:
        match node:
            case ast.Variable():
                return None
            case ast.Literal():
                return self._literal_problem(node, condition)
            case ast.Call():
                return self._call_problem(node, condition)
            case ast.Unary() | ast.Binary() | ast.In():
                return None if condition else self._truth_problem(node)
            case ast.Aggregate():
                hint = "compute it in a sub-select, and use its variable here"
                return (
                    (
                        f"{node.function.upper()} is an aggregate, so it cannot be part of a "
                        f"{self.purpose}"
                    ),
                    hint,
                )
            case ast.Exists():
                return f"EXISTS asks for a pattern, so it cannot be part of a {self.purpose}", None
            case ast.Iri():
                return (
                    f"<{node.value}> is not a number, so it cannot be part of a {self.purpose}",
                    None,
                )

    def _literal_problem(self, literal: ast.Literal, condition: bool) -> _Problem | None:
        if is_number(literal) or (condition and not math.isnan(boolean_value(literal))):
            return None
        return (
            f'"{literal.lexical}" is not a number, so it cannot be part of a {self.purpose}',
            None,
        )

    def _truth_problem(self, node: ast.Unary | ast.Binary | ast.In) -> _Problem | None:
        operator = _operator(node)
        if operator in _ARITHMETIC:
            return None
        hint = "use it as the condition of IF(condition, then, otherwise)"
        return f"{operator} does not give a number, so it cannot be part of a {self.purpose}", hint

    def _call_problem(self, call: ast.Call, condition: bool) -> _Problem | None:
        name = call.function.value if isinstance(call.function, ast.Iri) else call.function
        if call.distinct:
            return f"DISTINCT has no meaning in {name}", "leave DISTINCT out"
        if name in _FORMS:
            return self._form_problem(name, call, condition)
        function = self.functions.find(call.function)
        if function is None:
            return self._unknown(name)
        if not function.takes(len(call.arguments)):
            wanted = f"at least {function.arity}" if function.variadic else f"{function.arity}"
            return _wrong_count(name, wanted, len(call.arguments), function.signature)
        return _range_problem(call) if function is FUNCTIONS["norm"] else None

    def _form_problem(self, name: str, call: ast.Call, condition: bool) -> _Problem | None:
        form, count = _FORMS[name], len(call.arguments)
        if name == "coalesce":
            return None if count else _wrong_count("COALESCE", "at least 1", count, form)
        wanted = 3 if name == "if" else 1
        if count != wanted:
            return _wrong_count(name.upper(), str(wanted), count, form)
        if name == "if":
            return None
        if not isinstance(call.arguments[0], ast.Variable):
            return "BOUND takes a variable", f"write {form}"
        if condition:
            return None
        hint = f"use it as the condition of {_FORMS['if']}"
        return f"BOUND does not give a number, so it cannot be part of a {self.purpose}", hint

    def _unknown(self, name: str) -> _Problem:
        if ":" in name:
            near = nearest(name, (known for known in self.functions if ":" in known))
            return (
                f"there is no scoring function <{name}>",
                f"did you mean <{near}>?" if near else None,
            )
        signatures = {
            known: self.functions[known].signature for known in self.functions if ":" not in known
        } | _FORMS
        near = nearest(name.lower(), signatures)
        known = ", ".join(sorted(signatures.values(), key=str.lower))
        hint = f"did you mean {signatures[near]}?" if near else f"known are {known}"
        return f"there is no scoring function {name}", hint


def _wanted(node: ast.Expression, condition: bool) -> Iterator[tuple[ast.Expression, bool]]:
    """Yield a node's operands, each with True if a condition is expected there."""
    match node:
        case ast.Call("if", (test, *branches)):
            yield test, True
            yield from ((branch, condition) for branch in branches)
        case ast.Call("coalesce", choices):
            yield from ((choice, condition) for choice in choices)
        case ast.Aggregate():
            pass
        case _:
            logical = isinstance(node, ast.Unary | ast.Binary) and node.operator in ("!", *_LOGIC)
            yield from ((operand, logical) for operand in operands(node))


def _operator(node: ast.Unary | ast.Binary | ast.In) -> str:
    if isinstance(node, ast.In):
        return "NOT IN" if node.negated else "IN"
    return node.operator


def _wrong_count(name: str, wanted: str, given: int, signature: str) -> _Problem:
    noun = "argument" if wanted.endswith(" 1") or wanted == "1" else "arguments"
    return f"{name} takes {wanted} {noun}, not {given}", f"write {signature}"


def _range_problem(call: ast.Call) -> _Problem | None:
    low, high = (_constant(each) for each in call.arguments[1:])
    if low is None or high is None or low < high:
        return None
    return (
        f"the range of norm from {low:g} to {high:g} is empty",
        f"write {FUNCTIONS['norm'].signature}",
    )


def _constant(expression: ast.Expression) -> float | None:
    """Return the value of a number that is written out, with or without signs; None for others."""
    sign = 1.0
    while isinstance(expression, ast.Unary) and expression.operator in ("+", "-"):
        sign, expression = (-sign if expression.operator == "-" else sign), expression.operand
    value = sign * literal_value(expression) if isinstance(expression, ast.Literal) else math.nan
    return None if math.isnan(value) else value
