"""Total order of a query's results, so that equal content gives equal answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from rspql.ast import (
    Assignment,
    Call,
    Node,
    OrderCondition,
    Query,
    Select,
    ServicePattern,
    SubSelect,
    Variable,
    rewritten,
)

Visible = Callable[[Query], Sequence[str]]
"""Function that returns the names that ``SELECT *`` stands for in a query."""


def totally_ordered(query: Query, visible: Visible, *, always: bool = True) -> Query:
    """Return a query ordered finally by all that it selects: term, text, datatype and language.

    The same is done to every sub-select with a LIMIT or an OFFSET, except those that remotes
    answer. Without ``always`` a query that has neither keeps its order; so does a query that is no
    SELECT.

    >>> select = Query(Select((Variable("x"),)), None, limit=3)
    >>> first, second, *_ = totally_ordered(select, lambda query: ()).order
    >>> first.expression, second.expression.function, second.expression.arguments
    (Variable(name='x'), 'str', (Variable(name='x'),))
    """

    def change(node: Node) -> Node:
        return (
            SubSelect(_ordered(node.query, visible, always=False))
            if isinstance(node, SubSelect)
            else node
        )

    return _ordered(
        rewritten(query, change, opaque=lambda node: isinstance(node, ServicePattern)),
        visible,
        always,
    )


def _ordered(query: Query, visible: Visible, always: bool) -> Query:
    is_cut = query.limit is not None or query.offset is not None
    if not isinstance(query.form, Select) or not (always or is_cut):
        return query
    names = [
        item.variable.name if isinstance(item, Assignment) else item.name
        for item in query.form.projection
    ]
    keys = (
        OrderCondition(key) for name in names or visible(query) for key in _keys(Variable(name))
    )
    return replace(query, order=(*query.order, *keys))


def _keys(variable: Variable) -> Iterator[Variable | Call]:
    # Terms may be equal but not the same: 1 and 1.0, "a"@en and "a"@fr.
    yield variable
    yield Call("str", (variable,))
    yield Call("str", (Call("datatype", (variable,)),))
    yield Call("lang", (variable,))
