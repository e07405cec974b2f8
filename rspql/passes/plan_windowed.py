"""Plan a query for evaluation window by window: plain SPARQL over the windows as named graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.recognise_topk import Ranking
from rspql.passes.split_sources import Sources, without_windows
from rspql.plan import RemotePart, WindowedPlan
from rspql.scoring import FunctionRegistry, check_expression, to_sparql

OWN_FUNCTIONS = "urn:acquatop:function:"
"""The namespace in which an engine finds registered functions that have a bare name."""


def plan_windowed(
    query: ast.Query, sources: Sources, ranking: Ranking | None, output: str, functions: FunctionRegistry
) -> WindowedPlan:
    """Return the plan of a normalised query; ``ranking`` is that of a top-k query.

    Of a top-k query, solutions whose score is an error or not a number are no results.
    """
    expand = expander(functions)
    remotes = tuple(_expanded(part, expand) for part in sources.remotes)
    plain = ast.rewritten(without_windows(_scored_only(query, ranking, functions) if ranking else query), expand)
    return WindowedPlan(
        name=query.registration.name.value if query.registration else None,
        output=output,
        windows=sources.windows,
        query=plain,
        remotes=remotes,
        score_variable=ranking.variable if ranking else None,
        functions=functions,
    )


def _expanded(part: RemotePart, expand: Callable[[ast.Node], ast.Node]) -> RemotePart:
    source = ast.rewritten(part.key_source, expand) if part.key_source else None
    return replace(part, pattern=ast.rewritten(part.pattern, expand), key_source=source)


def expander(functions: FunctionRegistry) -> Callable[[ast.Node], ast.Node]:
    """Return what writes calls of AcquaTop's own functions in plain SPARQL."""

    def expand(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.Call) or functions.find(node.function) is None:
            return node
        plain = to_sparql(node, functions)
        if plain is not None:
            return plain
        if isinstance(node.function, ast.Iri):
            return node
        return replace(node, function=ast.Iri(OWN_FUNCTIONS + node.function.lower()))

    return expand


def _scored_only(query: ast.Query, ranking: Ranking, functions: FunctionRegistry) -> ast.Query:
    """Return a top-k query that leaves out solutions without a score, if it does not group.

    Where the score is arithmetic, what orders is computed in doubles, as everywhere else.
    """
    query = _in_doubles(query, ranking, functions)
    assert isinstance(query.form, ast.Select)
    assert query.where is not None
    score = query.order[0].expression
    computes = [item for item in query.form.projection if isinstance(item, ast.Assignment)]
    grouped = query.group_by or any(isinstance(node, ast.Aggregate) for each in computes for node in ast.walk(each))
    if grouped or query.having:
        return query
    # What equals itself is neither an error nor NaN.
    has_score = ast.Call("coalesce", (ast.Binary("=", score, score), ast.Literal("false", ast.XSD + "boolean")))
    names = tuple(item.variable if isinstance(item, ast.Assignment) else item for item in query.form.projection)
    where = ast.Group((ast.Group(query.where.elements), *computes, ast.Filter(has_score)))
    return replace(query, form=replace(query.form, projection=names), where=where)


def _in_doubles(query: ast.Query, ranking: Ranking, functions: FunctionRegistry) -> ast.Query:
    """Return a top-k query that orders by its score in doubles, and selects it in SPARQL's own type where it can."""
    problems: list[Diagnostic] = []
    if ranking.expression is not None:
        check_expression(ranking.expression, problems, functions=functions)
    if ranking.expression is None or problems:
        return query
    in_doubles = to_sparql(ranking.expression, functions, doubles=True)
    typed = to_sparql(ranking.expression, functions)
    if in_doubles is None:
        return query
    # Oxigraph's decimals end in errors on ordinary quotients; the double is then better than nothing.
    selected = in_doubles if typed is None else ast.Call("coalesce", (typed, in_doubles))

    def change(node: ast.Node) -> ast.Node:
        if isinstance(node, ast.Assignment) and node.variable.name == ranking.variable:
            return replace(node, expression=selected)
        return node

    assert query.where is not None
    assert isinstance(query.form, ast.Select)
    # Only the outermost names: within a sub-select the same name would be another's.
    where: Any = tuple(change(each) for each in query.where.elements)
    items: Any = tuple(change(each) for each in query.form.projection)
    order = (replace(query.order[0], expression=in_doubles), *query.order[1:])
    return replace(query, where=ast.Group(where), form=replace(query.form, projection=items), order=order)
