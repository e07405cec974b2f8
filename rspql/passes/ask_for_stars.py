"""Ask services of records for triple patterns alone: what else a SERVICE has is computed here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from rspql import ast
from rspql.scope import Names, certain_in, used_in, visible


def ask_for_stars(query: ast.Query, records: Collection[str]) -> ast.Query:
    """Return an equivalent query whose SERVICE patterns on ``records`` have only triple patterns.

    Such services match records and decide nothing. Filters, BINDs and VALUES move out of their
    SERVICE, into braces around it if they could mean something else outside. EXISTS and other
    patterns stay: they need the records themselves.
    """
    if not records:
        return query

    def change(node: ast.Node) -> ast.Node:
        match node:
            case ast.ServicePattern(ast.Iri(value), group) if value in records:
                return _asking_less(node, group)
            case ast.Group(elements) if any(isinstance(each, _Moved) for each in elements):
                return replace(node, elements=_without_braces(elements))
        return node

    return ast.rewritten(query, change)


class _Moved(ast.Group):
    """Braces around a SERVICE and what has been moved out of it."""


def _asking_less(service: ast.ServicePattern, group: ast.Group) -> ast.Pattern:
    asked = tuple(each for each in group.elements if isinstance(each, ast.TriplePattern))
    rest = tuple(each for each in group.elements if not isinstance(each, ast.TriplePattern))
    if not asked or not rest or not all(map(_is_computed, rest)):
        return service
    less = replace(service, group=replace(group, elements=asked))
    return _Moved((less, *rest), span=service.span)


def _is_computed(element: ast.Pattern) -> bool:
    """Return True if an element needs nothing but the values that other elements bind."""
    return isinstance(element, ast.Filter | ast.Assignment | ast.Values) and not any(
        isinstance(node, ast.Exists) for node in ast.walk(element)
    )


def _without_braces(elements: Sequence[ast.Pattern]) -> tuple[ast.Pattern, ...]:
    """Return elements in which braces are opened whose content means the same without them."""
    flat: list[ast.Pattern] = []
    for at, element in enumerate(elements):
        if not isinstance(element, _Moved):
            flat.append(element)
        elif _means_the_same(element, visible(ast.Group((*elements[:at], *elements[at + 1 :])))):
            flat.extend(element.elements)
        else:
            flat.append(ast.Group(element.elements, span=element.span))
    return tuple(flat)


def _means_the_same(braces: _Moved, taken: Names) -> bool:
    """Return True if braces may be opened beside elements that may bind the names ``taken``.

    What is computed within them must need only what their SERVICE always binds, and no other
    element may bind what it computes.
    """
    service, *rest = braces.elements
    known = certain_in(service)
    for element in rest:
        match element:
            case ast.Filter(expression) | ast.Assignment(expression):
                if not used_in(expression).keys() <= known.keys():
                    return False
        if isinstance(element, ast.Assignment) and element.variable.name in taken:
            return False
    return True
