"""Variables of patterns: those that may be bound, and those that are always bound."""

from __future__ import annotations

from collections.abc import Iterable

from rspql import ast

Names = dict[str, None]
"""Names of variables in the order of their first occurrence."""


def visible(group: ast.Group) -> Names:
    """Return the variables that a group's solutions may bind [18.2.1].

    >>> x, y = ast.Variable("x"), ast.Variable("y")
    >>> inner = ast.Group((ast.TriplePattern(x, ast.Iri("urn:p"), y),))
    >>> group = ast.Group((ast.OptionalPattern(inner),))
    >>> list(visible(group)), list(certain(group))
    (['x', 'y'], [])
    """
    return {name: None for element in group.elements for name in _visible_in(element)}


def certain(group: ast.Group) -> Names:
    """Return the variables that every solution of a group binds; may leave some out."""
    return {name: None for element in group.elements for name in certain_in(element)}


def certain_in(element: ast.Pattern) -> Names:
    """Return the variables that every solution of one element binds; may leave some out."""
    match element:
        case ast.TriplePattern():
            return variables_of([element])
        case ast.Group():
            return certain(element)
        case (
            ast.WindowPattern(place, group)
            | ast.GraphPattern(place, group)
            | ast.ServicePattern(place, group)
        ):
            return _named([place]) | certain(group)
        case ast.UnionPattern(groups):
            branches = [certain(group) for group in groups]
            return {
                name: None for name in branches[0] if all(name in branch for branch in branches)
            }
        case ast.Values(variables, rows):
            columns = zip(variables, zip(*rows, strict=True), strict=True) if rows else ()
            return {variable.name: None for variable, column in columns if None not in column}
        case ast.SubSelect(query):
            return _certain_in_query(query)
        case _:
            return {}


def variables_of(pattern: Iterable[ast.TriplePattern]) -> Names:
    """Return the variables of triple patterns."""
    return _named(
        term for triple in pattern for term in (triple.subject, triple.predicate, triple.object)
    )


def selected(query: ast.Query) -> Names:
    """Return the variables that a SELECT query's solutions may bind."""
    assert isinstance(query.form, ast.Select)
    if query.form.projection:
        items = query.form.projection
        return _named(item.variable if isinstance(item, ast.Assignment) else item for item in items)
    inner = visible(query.where) if query.where else {}
    return inner | (_named(query.values.variables) if query.values else {})


def used_in(node: ast.Node) -> Names:
    """Return the variables used in an expression or any other part of a query, also in EXISTS."""
    return _named(ast.walk(node))


def _certain_in_query(query: ast.Query) -> Names:
    inner = certain(query.where) if query.where else {}
    grouped = {item.name for item in query.group_by if isinstance(item, ast.Variable)}
    return {
        name: None
        for name in selected(query)
        if name in inner and (not query.group_by or name in grouped)
    }


def _visible_in(element: ast.Pattern) -> Names:
    match element:
        case ast.Filter() | ast.MinusPattern():
            return {}
        case ast.Assignment(_, variable):
            return {variable.name: None}
        case ast.OptionalPattern(group):
            return visible(group)
        case ast.Group():
            return visible(element)
        case (
            ast.WindowPattern(place, group)
            | ast.GraphPattern(place, group)
            | ast.ServicePattern(place, group)
        ):
            return _named([place]) | visible(group)
        case ast.UnionPattern(groups):
            return {name: None for group in groups for name in visible(group)}
        case ast.Values(variables):
            return _named(variables)
        case ast.SubSelect(query):
            return selected(query)
        case _:
            return variables_of([element])


def _named(nodes: Iterable[ast.Node]) -> Names:
    return {node.name: None for node in nodes if isinstance(node, ast.Variable)}
