"""Groups whose columns name each other, written out: the engine does not know such names."""

from __future__ import annotations

from dataclasses import replace

from rspql.ast import (
    Aggregate,
    Assignment,
    Node,
    Query,
    Select,
    ServicePattern,
    SubSelect,
    Variable,
    rewritten,
    walk,
)

_MOST = 1_000
"""Number of nodes in a column from which on nothing is written out: it could double each time."""


def with_written_out_groups(query: Query) -> Query:
    """Return a query in which no SELECT of groups computes with the names that it gives.

    ``(SUM(?n) AS ?s) (?s * 2 AS ?t)`` becomes ``(SUM(?n) AS ?s) (SUM(?n) * 2 AS ?t)``. What a
    remote answers is not touched.
    """

    def change(node: Node) -> Node:
        return SubSelect(_written_out(node.query)) if isinstance(node, SubSelect) else node

    return _written_out(
        rewritten(query, change, opaque=lambda node: isinstance(node, ServicePattern))
    )


def _written_out(query: Query) -> Query:
    form = query.form
    if not isinstance(form, Select) or not (
        query.group_by or any(isinstance(node, Aggregate) for node in walk(form))
    ):
        return query
    given: dict[str, Node] = {}

    def change(node: Node) -> Node:
        return given.get(node.name, node) if isinstance(node, Variable) else node

    items: list[Variable | Assignment] = []
    for item in form.projection:
        if isinstance(item, Assignment):
            item = replace(item, expression=rewritten(item.expression, change))
            if sum(1 for _ in walk(item.expression)) > _MOST:
                return query
            given[item.variable.name] = item.expression
        items.append(item)
    return replace(query, form=replace(form, projection=tuple(items)))
