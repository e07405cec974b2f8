"""Query forms: the SELECT whose rows a CONSTRUCT, an ASK or a DESCRIBE is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rspql import ast


def rows_of(query: ast.Query) -> ast.Query:
    """Return the SELECT of the rows that a query of another form is made of.

    >>> x = ast.Variable("x")
    >>> template = (ast.TriplePattern(x, ast.Iri("urn:p"), x),)
    >>> rows_of(ast.Query(ast.Construct(template), None)).form.projection
    (Variable(name='x'),)
    """
    where = query.where or ast.Group(())
    match query.form:
        case ast.Construct(template):
            grouped = _group_variables(query)
            names = [name for name in variables_of(template) if not grouped or name in grouped]
            form = ast.Select(tuple(map(ast.Variable, names)), span=query.form.span)
        case ast.Describe(targets):
            variables = tuple(each for each in targets if isinstance(each, ast.Variable))
            form = ast.Select(variables, "DISTINCT", span=query.form.span)
        case ast.Ask():
            form = ast.Select(span=query.form.span)
        case _:
            return query
    return replace(query, form=form, where=where)


def variables_of(template: Sequence[ast.TriplePattern]) -> tuple[str, ...]:
    """Return the names of a template's variables in the order of their occurrence."""
    nodes = (node for triple in template for node in ast.walk(triple))
    return tuple(dict.fromkeys(node.name for node in nodes if isinstance(node, ast.Variable)))


def _group_variables(query: ast.Query) -> set[str]:
    """Return the variables of GROUP BY: no others can be selected as they are."""
    keys = (key.variable if isinstance(key, ast.Assignment) else key for key in query.group_by)
    return {key.name for key in keys if isinstance(key, ast.Variable)}
