"""Patterns of a query that stand beside its windows: of services, and of static graphs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from rspql import ast

FromStream = ast.WindowPattern | ast.SubSelect
"""Part of a query about its windows: a pattern, or a sub-query around or in one."""


def joins_more(query: ast.Query) -> bool:
    """Return True if a query joins its windows with a SERVICE or a static graph."""
    if query.where is None:
        return False
    asks = any(isinstance(node, ast.ServicePattern) for node in ast.walk(query.where))
    return asks or (names_graphs(query) and matches_graphs(query.where))


def names_graphs(query: ast.Query) -> bool:
    """Return True if a query names static graphs."""
    return bool(query.default_graphs or query.named_graphs)


def matches_graphs(node: ast.Node) -> bool:
    """Return True if static graphs match patterns of a node."""
    static = (ast.TriplePattern, ast.GraphPattern)
    return any(isinstance(each, static) for each in nodes_here(node))


def is_of_stream(element: ast.Node) -> TypeGuard[FromStream]:
    """Return True if an element is a WINDOW pattern, or a sub-query with one in it."""
    if isinstance(element, ast.SubSelect):
        return any(isinstance(node, ast.WindowPattern) for node in ast.walk(element))
    return isinstance(element, ast.WindowPattern)


def is_constant(sub: ast.SubSelect) -> bool:
    """Return True if a sub-query asks nothing but static graphs."""
    asks = (ast.WindowPattern, ast.ServicePattern)
    return not any(isinstance(node, asks) for node in ast.walk(sub))


def nodes_here(node: ast.Node) -> Iterator[ast.Node]:
    """Yield the nodes of a node in source order, but none within WINDOW and SERVICE patterns."""
    pending = [node]
    while pending:
        each = pending.pop()
        yield each
        if not isinstance(each, ast.ServicePattern | ast.WindowPattern):
            pending += reversed(list(ast.children(each)))
