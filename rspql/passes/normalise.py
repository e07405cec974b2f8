"""Normalise a query: reduce it to fewer shapes for the passes that follow."""

from __future__ import annotations

from dataclasses import replace

from rspql import ast


def normalise(query: ast.Query) -> ast.Query:
    """Return an equivalent query whose windows are all WINDOW patterns and whose joins are flat.

    ``GRAPH w { … }`` on a window's name becomes ``WINDOW w { … }``. ``WINDOW ?w { … }`` becomes
    ``GRAPH ?w { … }`` with a filter for windows. Braces that only join (without FILTER, BIND,
    OPTIONAL or MINUS in them) are removed.
    """
    windows = {
        clause.window.value: None for clause in query.windows if isinstance(clause.window, ast.Iri)
    }

    def rewrite(node: ast.Node) -> ast.Node:
        if (
            isinstance(node, ast.GraphPattern)
            and isinstance(node.graph, ast.Iri)
            and node.graph.value in windows
        ):
            return ast.WindowPattern(node.graph, node.group, span=node.span)
        if isinstance(node, ast.WindowPattern) and isinstance(node.window, ast.Variable):
            graph = ast.GraphPattern(node.window, node.group, span=node.span)
            is_window = ast.In(node.window, tuple(map(ast.Iri, windows)))
            return ast.Group((graph, ast.Filter(is_window)), span=node.span)
        if isinstance(node, ast.Group) and any(
            isinstance(each, ast.Group) for each in node.elements
        ):
            return replace(node, elements=_joined(node.elements))
        return node

    return ast.rewritten(query, rewrite)


def _joined(elements: tuple[ast.Pattern, ...]) -> tuple[ast.Pattern, ...]:
    flat: list[ast.Pattern] = []
    for element in elements:
        is_join = isinstance(element, ast.Group) and all(
            _only_joins(each) for each in element.elements
        )
        flat.extend(element.elements if is_join and isinstance(element, ast.Group) else [element])
    return tuple(flat)


def _only_joins(element: ast.Pattern) -> bool:
    return isinstance(
        element,
        ast.WindowPattern | ast.GraphPattern | ast.ServicePattern | ast.Values | ast.SubSelect,
    )
