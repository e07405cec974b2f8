"""Decide the filters of a top-k query in exact digits, as the incremental operators do."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.exact_calls import ExactCalls
from rspql.passes.push_filters import conjuncts
from rspql.passes.recognise_topk import written_out
from rspql.passes.split_sources import Sources
from rspql.scope import used_in, visible
from rspql.scoring import FunctionRegistry, check_condition


def filters_in_digits(
    query: ast.Query, sources: Sources, functions: FunctionRegistry, calls: ExactCalls
) -> tuple[ast.Query, Sources]:
    """Return a query that can be evaluated incrementally with filters that decide the same.

    ``calls`` compute what the engine cannot.
    Filters on the remote's variables alone stay as they are: the remote decides them.
    """
    in_window, in_service = set[str](), set[str]()
    for node in ast.walk(query):
        if isinstance(node, ast.WindowPattern):
            in_window.update(each.name for each in ast.walk(node) if isinstance(each, ast.Variable))
        elif isinstance(node, ast.ServicePattern):
            in_service.update(visible(node.group))

    def decided(part: ast.Expression) -> ast.Expression:
        names = set(used_in(part))
        if names and names <= in_service - in_window:
            return part
        problems: list[Diagnostic] = []
        check_condition(part, problems, functions=functions)
        return part if problems else calls.holds(part)

    def change(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.Filter):
            return node
        written = written_out(node.expression, query, selected=False)
        if written is None:
            return node
        parts = map(decided, conjuncts(written))
        return replace(node, expression=reduce(lambda a, b: ast.Binary("&&", a, b), parts))

    def of(group: ast.Group) -> ast.Group:
        return ast.rewritten(
            group, change, opaque=lambda node: isinstance(node, ast.ServicePattern)
        )

    assert query.where is not None
    remotes = tuple(
        replace(part, key_source=None if part.key_source is None else of(part.key_source))
        for part in sources.remotes
    )
    return replace(query, where=of(query.where)), replace(sources, remotes=remotes)
