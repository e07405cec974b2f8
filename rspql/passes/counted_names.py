"""Name the expressions that are counted.

COUNT passes over errors [18.5.1.2]. Oxigraph does so only for variables that are unbound.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from rspql import ast


def with_counted_names(query: ast.Query) -> ast.Query:
    """Return a query that counts a variable where it counts an expression.

    >>> from rspql.parser import parse
    >>> from rspql.printer import expression_text
    >>> counted = with_counted_names(parse("SELECT (COUNT(?x / ?y) AS ?n) WHERE { ?x <urn:p> ?y }"))
    >>> expression_text(counted.form.projection[0].expression)
    'COUNT(?counted1)'
    """
    if not isinstance(query.form, ast.Select):
        return query
    taken = {node.name for node in ast.walk(query) if isinstance(node, ast.Variable)}
    names = (name for at in itertools.count(1) if (name := f"counted{at}") not in taken)
    made: dict[ast.Expression, ast.Assignment] = {}

    def change(node: ast.Node) -> ast.Node:
        if not isinstance(node, ast.Aggregate) or node.function != "count":
            return node
        argument = node.argument
        if argument is None or isinstance(argument, ast.Variable):
            return node
        if argument not in made:
            made[argument] = ast.Assignment(argument, ast.Variable(next(names)))
        return replace(node, argument=made[argument].variable)

    items = tuple(
        ast.rewritten(item, change) if isinstance(item, ast.Assignment) else item
        for item in query.form.projection
    )
    having = tuple(ast.rewritten(each, change) for each in query.having)
    order = tuple(ast.rewritten(each, change) for each in query.order)
    if not made:
        return query
    where = ast.Group((query.where or ast.Group(()), *made.values()))
    form = replace(query.form, projection=items)
    return replace(query, form=form, where=where, having=having, order=order)
