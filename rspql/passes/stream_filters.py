"""Check filters that are decided on a stream's values alone, as records come."""

from __future__ import annotations

from collections.abc import Iterable

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.check_growth import OF_ROWS, check_growth
from rspql.passes.not_incremental import NotIncremental
from rspql.scoring import FunctionRegistry, check_condition
from rspql.term_conditions import term_condition


def check_stream_filters(conditions: Iterable[ast.Expression], functions: FunctionRegistry) -> None:
    """Raise for a filter that neither arithmetic nor SPARQL's functions on its values decide."""
    for condition in conditions:
        problems: list[Diagnostic] = []
        check_condition(condition, problems, functions=functions)
        if not problems:
            continue
        if term_condition(condition, functions) is None:
            raise NotIncremental(
                f"a filter is not decided on arrival: {problems[0].message}", condition
            )
        check_growth([ast.Filter(condition, span=condition.span)], OF_ROWS)
