"""Check that the records from which a solution comes are linked with each other.

Records are linked if a subject of one, or an object that a pattern joins on, is also in the other.
If a pattern leads from each triple of a solution to all others, they are among linked records. So
a window's solutions are those of its groups of linked records, each evaluated by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rspql import ast
from rspql.passes.not_incremental import NotIncremental
from rspql.paths import forward, joins_of_any_objects, may_be_empty

Nodes = frozenset[ast.Term]
"""Terms of a pattern that stand for subjects or objects in each of its solutions."""

_APART = "the pattern joins records of a window that nothing links"


def check_linked_pattern(group: ast.Group) -> None:
    """Raise unless the triples of each solution of a group are linked."""
    _linked(group.elements)
    for triple in joins_of_any_objects(group):
        raise NotIncremental("the pattern joins on values of any property", triple)


def _linked(elements: Sequence[ast.Pattern]) -> Nodes:
    """Return the nodes of a group's solutions, which are linked; none if branches share none."""
    parts: list[Nodes] = []
    waiting: list[ast.TriplePattern] = []
    for element in elements:
        _check_optional(element, parts)
        if isinstance(element, ast.TriplePattern) and may_be_empty(element.predicate):
            waiting.append(element)
        elif (nodes := _nodes_of(element)) is not None:
            parts = _with(parts, nodes)
        parts = _with_paths(parts, waiting)
    if waiting:
        raise NotIncremental("a path that may be empty begins anywhere in the window", waiting[0])
    if len(parts) > 1:
        raise NotIncremental(_APART, elements[-1])
    for element in elements:
        if isinstance(element, ast.Filter):
            _check_exists(element.expression, parts)
    return parts[0] if parts else frozenset()


def _nodes_of(element: ast.Pattern) -> Nodes | None:
    """Return the nodes of an element in each solution; None if it matches no triple."""
    match element:
        case ast.TriplePattern():
            return _ends(element)
        case ast.Group(inner):
            nodes = _linked(inner)
            return nodes if nodes or _has_union(element) else None
        case ast.UnionPattern(groups):
            branches = [_linked(group.elements) for group in groups]
            for nodes, group in zip(branches, groups, strict=True):
                if not nodes and not _has_union(group):
                    raise NotIncremental("a branch of a UNION matches nothing", group)
            return frozenset.intersection(*branches)
        case ast.SubSelect():
            raise NotIncremental("a sub-query stands within another", element)
        case _:
            return None


def _check_optional(element: ast.Pattern, parts: Sequence[Nodes]) -> None:
    """Raise if what an element matches beside others is not linked with those before it."""
    if isinstance(element, ast.OptionalPattern | ast.MinusPattern):
        _check_beside(element.group, parts, element)
    elif isinstance(element, ast.Assignment):
        _check_exists(element.expression, parts)


def _check_exists(expression: ast.Expression, parts: Sequence[Nodes]) -> None:
    for each in _outermost_exists(expression):
        _check_beside(each.group, parts, each)


def _check_beside(group: ast.Group, parts: Sequence[Nodes], element: ast.Node) -> None:
    nodes = _linked(group.elements)
    if not any(nodes & part for part in parts):
        raise NotIncremental(_APART, element)


def _with_paths(parts: list[Nodes], waiting: list[ast.TriplePattern]) -> list[Nodes]:
    """Return parts with the paths that begin or end in one, which wait no longer."""
    for each in list(waiting):
        if any(_ends(each) & part for part in parts):
            waiting.remove(each)
            return _with_paths(_with(parts, _ends(each)), waiting)
    return parts


def _with(parts: Iterable[Nodes], nodes: Nodes) -> list[Nodes]:
    """Return parts that share no node, with one more."""
    apart = []
    for part in parts:
        if part & nodes:
            nodes |= part
        else:
            apart.append(part)
    return [*apart, nodes]


def _ends(triple: ast.TriplePattern) -> Nodes:
    """Return the nodes of a triple pattern: a constant object links nothing."""
    triple = forward(triple)
    is_constant = isinstance(triple.object, ast.Iri | ast.Literal)
    return frozenset([triple.subject] if is_constant else [triple.subject, triple.object])


def _has_union(group: ast.Group) -> bool:
    return any(
        isinstance(each, ast.UnionPattern) or (isinstance(each, ast.Group) and _has_union(each))
        for each in group.elements
    )


def _outermost_exists(expression: ast.Node) -> Iterator[ast.Exists]:
    if isinstance(expression, ast.Exists):
        yield expression
        return
    for child in ast.children(expression):
        yield from _outermost_exists(child)
