"""Expressions on values of any type, in the SPARQL that an engine without own functions decides."""

from __future__ import annotations

from rspql import ast
from rspql.passes.check_names import calls_own
from rspql.passes.plan_windowed import VOLATILE, expander
from rspql.scoring import FunctionRegistry, variables_in, with_ordered_nan


def term_condition(condition: ast.Expression, functions: FunctionRegistry) -> ast.Expression | None:
    """Return a condition as a SPARQL engine decides it, from its variables' values alone.

    None if that is not all that it needs: it has no variable, calls a function that SPARQL lacks,
    depends on when it is decided, or matches patterns.
    """
    plain = _plain(condition, functions)
    return None if plain is None else with_ordered_nan(plain, keeps_only_true=True)


def term_value(expression: ast.Expression, functions: FunctionRegistry) -> ast.Expression | None:
    """Return an expression as a SPARQL engine computes it; None as for a condition."""
    plain = _plain(expression, functions)
    return None if plain is None else with_ordered_nan(plain)


def _plain(expression: ast.Expression, functions: FunctionRegistry) -> ast.Expression | None:
    plain = ast.rewritten(expression, expander(functions))
    if not variables_in(plain) or calls_own(plain) or any(map(_needs_more, ast.walk(plain))):
        return None
    return plain


def _needs_more(node: ast.Node) -> bool:
    is_volatile = isinstance(node, ast.Call) and node.function in VOLATILE
    return is_volatile or isinstance(node, ast.Exists | ast.Aggregate)
