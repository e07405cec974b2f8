"""Nest groups: turn a top-k query over groups into one over a sub-query that only aggregates."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

from rspql import ast
from rspql.passes.beside_windows import joins_more


def nest_groups(query: ast.Query, *, joined: bool = False) -> ast.Query:
    """Return an equivalent normalised query in which a sub-query makes the groups.

    The query::

        SELECT ?x (COUNT(*) + 1 AS ?n) … GROUP BY ?x ORDER BY ?n LIMIT 3

    becomes::

        SELECT ?x (?count + 1 AS ?n)
        { { SELECT ?x (COUNT(*) AS ?count) … GROUP BY ?x } } ORDER BY ?n LIMIT 3

    Only top-k queries over windows alone change, or, if it is ``joined``, those with a SERVICE or a
    static graph. All others stay as they are.
    """
    if not _is_topk_of_groups(query, joined):
        return query
    query = _with_named_keys(query)
    assert isinstance(query.form, ast.Select)
    columns = _columns(query)
    variables = {column.expression: column.variable for column in reversed(columns)}

    def change(node: ast.Node) -> ast.Node:
        return replace(variables[node], span=node.span) if isinstance(node, ast.Aggregate) else node

    keys = map(_named, query.group_by)
    form = ast.Select((*keys, *columns), span=query.form.span)
    sub = ast.Query(
        form, query.where, group_by=query.group_by, having=query.having, span=query.span
    )
    # An item that is just an aggregate is computed in the sub-query, under its own name.
    items = (
        _named(item) if _is_alone(item) else ast.rewritten(item, change)
        for item in query.form.projection
    )
    return replace(
        query,
        form=replace(query.form, projection=tuple(items)),
        where=ast.Group((ast.SubSelect(sub, span=query.span),)),
        group_by=(),
        having=(),
        order=tuple(ast.rewritten(each, change) for each in query.order),
    )


def _columns(query: ast.Query) -> list[ast.Assignment]:
    """Return the aggregates of a query, each with a variable: its own or a fresh one."""
    assert isinstance(query.form, ast.Select)
    columns = [
        item
        for item in query.form.projection
        if isinstance(item, ast.Assignment) and _is_alone(item)
    ]
    named: set[ast.Expression] = {column.expression for column in columns}
    taken = {node.name for node in ast.walk(query) if isinstance(node, ast.Variable)}
    numbers = itertools.count(2)
    for node in (node for each in _expressions(query) for node in ast.walk(each)):
        if isinstance(node, ast.Aggregate) and node not in named:
            names = itertools.chain(
                (node.function,), (f"{node.function}{number}" for number in numbers)
            )
            name = next(name for name in names if name not in taken)
            columns.append(ast.Assignment(node, ast.Variable(name), span=node.span))
            named.add(node)
            taken.add(name)
    return columns


def _with_named_keys(query: ast.Query) -> ast.Query:
    """Return a query that gives a name to each expression that it groups by."""
    taken = {node.name for node in ast.walk(query) if isinstance(node, ast.Variable)}
    names = (name for number in itertools.count(1) if (name := f"key{number}") not in taken)
    keys = (
        key
        if isinstance(key, ast.Variable | ast.Assignment)
        else ast.Assignment(key, ast.Variable(next(names)), span=key.span)
        for key in query.group_by
    )
    return replace(query, group_by=tuple(keys))


def _is_topk_of_groups(query: ast.Query, joined: bool) -> bool:
    """Return True if a query ranks groups over windows and needs only their keys and aggregates."""
    if (
        not isinstance(query.form, ast.Select)
        or query.where is None
        or not query.order
        or not query.limit
    ):
        return False
    patterns = list(ast.walk(query.where))
    if joins_more(query) != joined:
        return False
    nodes = [node for each in _expressions(query) for node in ast.walk(each)]
    if (
        not query.group_by
        and not query.having
        and not any(isinstance(node, ast.Aggregate) for node in nodes)
    ):
        return False
    computed = [
        item.variable.name for item in query.form.projection if isinstance(item, ast.Assignment)
    ]
    names = {*computed, *(_named(key).name for key in query.group_by if _has_name(key))}
    return any(isinstance(node, ast.WindowPattern) for node in patterns) and all(
        _needs_only(names, each) for each in _expressions(query)
    )


def _needs_only(names: set[str], node: ast.Node) -> bool:
    """Return True if an expression needs only the given variables and aggregates."""
    pending = [node]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Exists) or (
            isinstance(node, ast.Variable) and node.name not in names
        ):
            return False
        pending += [] if isinstance(node, ast.Aggregate) else list(ast.children(node))
    return True


def _expressions(query: ast.Query) -> Iterator[ast.Expression]:
    """Yield the expressions that a SELECT query computes and orders by."""
    assert isinstance(query.form, ast.Select)
    yield from (
        item.expression for item in query.form.projection if isinstance(item, ast.Assignment)
    )
    yield from (each.expression for each in query.order)


def _is_alone(item: ast.Variable | ast.Assignment) -> bool:
    """Return True if a selected item is an aggregate and nothing else."""
    return isinstance(item, ast.Assignment) and isinstance(item.expression, ast.Aggregate)


def _has_name(key: ast.Expression | ast.Assignment) -> bool:
    return isinstance(key, ast.Variable | ast.Assignment)


def _named(key: ast.Expression | ast.Assignment) -> ast.Variable:
    """Return the variable of a named group key or item."""
    named = key.variable if isinstance(key, ast.Assignment) else key
    assert isinstance(named, ast.Variable)
    return named
