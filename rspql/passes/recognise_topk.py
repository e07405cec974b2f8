"""Recognise a top-k query: windows, joined with a service or not, scored, ordered, limited."""

from __future__ import annotations

from dataclasses import dataclass

from rspql import ast
from rspql.diagnostics import Diagnostic

LARGEST = 1_000
"""Maximum number of nodes of a score after the names in it are written out."""


@dataclass(frozen=True)
class Ranking:
    """Ranking of a top-k query: its score, order and limits.

    ``variable`` is the variable that ORDER BY names, None if it is another expression.
    ``expression`` is the score with every variable computed by the query replaced by its
    expression; None if that is too large. If it ``orders_terms``, infinite scores stand for terms
    that are no numbers. If it is ``only_place``, the score is the place of a ``term``,
    and rows count for which ``holds`` holds.
    """

    expression: ast.Expression | None
    variable: str | None
    descending: bool
    k: int
    offset: int
    more_keys: tuple[ast.OrderCondition, ...]
    orders_terms: bool = False
    only_place: bool = False
    term: ast.Expression | None = None
    holds: ast.Expression | None = None


def recognise_topk(
    query: ast.Query, found: list[Diagnostic], *, needs_window: bool = True
) -> Ranking | Diagnostic:
    """Return the ranking of a top-k query, or the first reason why a query is not one.

    Appends a warning to ``found`` for likely mistakes: a LIMIT without ranking, and, with a
    SERVICE, a ranking without LIMIT.
    """
    patterns = list(ast.walk(query.where)) if query.where else []
    window = any(isinstance(node, ast.WindowPattern) for node in patterns)
    service = any(isinstance(node, ast.ServicePattern) for node in patterns)
    if isinstance(query.form, ast.Describe):
        return _reason("DESCRIBE shows all that the windows say of a resource", query.form)
    if not isinstance(query.form, ast.Select):
        return _reason("its results are not ordered and limited", query.form)
    if not window and needs_window:
        return _reason("it has no WINDOW pattern", query.where or query)
    if not query.order:
        hint = "add ORDER BY DESC(?score) before LIMIT"
        if query.limit is not None:
            message = (
                "the query has a LIMIT but no ORDER BY, so nothing says which results are the top"
            )
            found.append(Diagnostic("no-order", message, query.form.span, hint, severity="warning"))
        return _reason("it has no ORDER BY", query.form, hint)
    if query.limit is None:
        hint = "add LIMIT k: how many results are wanted"
        if service:
            message = "the query has no LIMIT"
            found.append(
                Diagnostic("no-limit", message, query.order[-1].span, hint, severity="warning")
            )
        return _reason("it has no LIMIT", query.order[-1], hint)
    if query.limit < 1:
        found.append(
            Diagnostic("limit", "LIMIT 0 asks for no results", query.form.span, severity="warning")
        )
        return _reason("its LIMIT is 0", query.form)
    first, *others = query.order
    return Ranking(
        expression=written_out(first.expression, query),
        variable=first.expression.name if isinstance(first.expression, ast.Variable) else None,
        descending=first.descending,
        k=query.limit,
        offset=query.offset or 0,
        more_keys=tuple(others),
    )


def last_binds(query: ast.Query) -> tuple[ast.Assignment, ...]:
    """Return the BINDs of the outermost group that are followed only by BINDs and filters."""
    binds: list[ast.Assignment] = []
    for element in query.where.elements if query.where else ():
        if isinstance(element, ast.Assignment):
            binds.append(element)
        elif not isinstance(element, ast.Filter):
            binds.clear()
    return tuple(binds)


def written_out(
    expression: ast.Expression, query: ast.Query, *, selected: bool = True
) -> ast.Expression | None:
    """Return an expression with computed variables replaced by their expressions.

    Replaces the BINDs at the end of the outermost group, where all else is bound already, and, with
    ``selected``, SELECT (… AS ?x). Returns None if the result would have more than ``LARGEST``
    nodes: each name that is used twice doubles the size.
    """
    items = query.form.projection if isinstance(query.form, ast.Select) and selected else ()
    computed: dict[str, ast.Expression] = {}
    sizes: dict[str, int] = {}

    def change(node: ast.Node) -> ast.Node:
        return computed.get(node.name, node) if isinstance(node, ast.Variable) else node

    def size_of(written: ast.Expression) -> int:
        return sum(
            sizes.get(node.name, 1) if isinstance(node, ast.Variable) else 1
            for node in ast.walk(written)
        )

    for item in (*last_binds(query), *items):
        if isinstance(item, ast.Assignment):
            sizes[item.variable.name] = size_of(item.expression)
            if sizes[item.variable.name] <= LARGEST:
                computed[item.variable.name] = ast.rewritten(item.expression, change)
    return ast.rewritten(expression, change) if size_of(expression) <= LARGEST else None


def _reason(message: str, node: ast.Node, hint: str | None = None) -> Diagnostic:
    return Diagnostic("not-top-k", message, node.span, hint, severity="warning")
