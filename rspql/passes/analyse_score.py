"""Analyse a score: find its direction in each of its variables."""

from __future__ import annotations

from collections.abc import Mapping

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.scoring import (
    Direction,
    FunctionRegistry,
    Interval,
    check_expression,
    directions,
    explain_direction,
)


def analyse_score(
    expression: ast.Expression,
    functions: FunctionRegistry,
    ranges: Mapping[str, Interval],
    found: list[Diagnostic],
) -> dict[str, Direction]:
    """Return the score's direction by variable; an unknown direction is a warning in ``found``.

    If the score is not made of numbers, return nothing.
    """
    problems: list[Diagnostic] = []
    check_expression(expression, problems, functions=functions)
    if problems:
        return {}
    by_variable = directions(expression, ranges, functions=functions)
    for name, direction in by_variable.items():
        if direction is Direction.UNKNOWN:
            culprit = explain_direction(expression, name, ranges, functions=functions)
            message = f"the score is not known to be monotone in ?{name}"
            hint = (
                "answers stay right; norm(?x, low, high) and FILTER(?x >= low) say in which "
                "range a value lies"
            )
            span = (culprit or expression).span
            found.append(Diagnostic("not-monotone", message, span, hint, severity="warning"))
    return dict(by_variable)
