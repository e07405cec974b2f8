"""Read the stream's part of a query: a star of triple patterns, filters, and aggregates per key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from rspql import ast
from rspql.passes.not_incremental import NotIncremental
from rspql.plan import AggregateColumn, Aggregation
from rspql.scope import Names, used_in, variables_of

KEPT_UP = ("count", "sum", "min", "max", "avg")
"""Aggregates that can be updated incrementally as events come and go."""


@dataclass(frozen=True)
class StreamPart:
    """The part of a query that is computed from its stream.

    ``filters`` need only variables of the pattern. ``later`` are filters in the WINDOW on
    aggregates; empty if there is no aggregate.
    """

    window: ast.Iri
    pattern: tuple[ast.TriplePattern, ...]
    filters: tuple[ast.Expression, ...]
    aggregate: Aggregation | None = None
    later: tuple[ast.Expression, ...] = ()

    @property
    def bound(self) -> Names:
        """The variables that the rest of the query sees."""
        if self.aggregate is None:
            return variables_of(self.pattern)
        return dict.fromkeys(
            (self.aggregate.key, *(column.variable for column in self.aggregate.columns))
        )

    @property
    def hidden(self) -> Names:
        """The pattern's variables that the rest of the query does not see."""
        bound = self.bound
        return {name: None for name in variables_of(self.pattern) if name not in bound}


def read_stream(element: ast.WindowPattern | ast.SubSelect) -> StreamPart:
    """Return the stream's part of a query: a WINDOW pattern, or a sub-query around or in one.

    Raises :class:`NotIncremental` with the first reason why it is not a star or an aggregate of
    one.
    """
    if isinstance(element, ast.SubSelect):
        return _aggregated(element, *_around_window(element))
    inner = next((each for each in element.group.elements if isinstance(each, ast.SubSelect)), None)
    if inner is None:
        return _plain(element.window, element.group.elements)
    beside = [each for each in element.group.elements if each is not inner]
    for each in beside:
        if not isinstance(each, ast.Filter):
            raise NotIncremental("there is more than a sub-query and filters in the WINDOW", each)
    part = _aggregated(
        inner, element.window, inner.query.where.elements if inner.query.where else ()
    )
    return StreamPart(
        part.window, part.pattern, part.filters, part.aggregate, _filters(beside, part.bound)
    )


def _around_window(sub: ast.SubSelect) -> tuple[ast.Iri | ast.Variable, tuple[ast.Pattern, ...]]:
    """Return the window's name in a sub-query around a WINDOW, and all elements to match."""
    elements = sub.query.where.elements if sub.query.where else ()
    windows = [each for each in elements if isinstance(each, ast.WindowPattern)]
    if any(isinstance(each, ast.ServicePattern) for each in ast.walk(sub)):
        raise NotIncremental("it aggregates or selects after the join with the SERVICE", sub)
    if len(windows) != 1:
        raise NotIncremental("a sub-query must have one WINDOW pattern in it", sub)
    for each in elements:
        if not isinstance(each, ast.WindowPattern | ast.Filter):
            raise NotIncremental("there is more than a WINDOW and filters in the sub-query", each)
    beside = tuple(each for each in elements if isinstance(each, ast.Filter))
    return windows[0].window, (*windows[0].group.elements, *beside)


def _plain(window: ast.Iri | ast.Variable, elements: Iterable[ast.Pattern]) -> StreamPart:
    """Return a star of triple patterns and its filters, which may use only its variables."""
    assert isinstance(window, ast.Iri), "normalise leaves no other"
    triples: list[ast.TriplePattern] = []
    for element in elements:
        if isinstance(element, ast.TriplePattern):
            _check_triple(element)
            triples.append(element)
        elif isinstance(element, ast.SubSelect):
            raise NotIncremental("a sub-query stands within another", element)
        elif not isinstance(element, ast.Filter):
            raise NotIncremental("there is more than triples and filters in the WINDOW", element)
    if not triples:
        raise NotIncremental("there is no triple pattern in the WINDOW", window)
    return StreamPart(window, tuple(triples), _filters(elements, variables_of(triples)))


def _check_triple(triple: ast.TriplePattern) -> None:
    if not isinstance(triple.predicate, ast.Iri):
        raise NotIncremental("a predicate in the WINDOW is not an IRI", triple.predicate)
    if isinstance(triple.subject, ast.BlankNode) or isinstance(triple.object, ast.BlankNode):
        raise NotIncremental("there is a blank node in the WINDOW", triple)


def _filters(elements: Iterable[ast.Pattern], bound: Names) -> tuple[ast.Expression, ...]:
    filters = tuple(each.expression for each in elements if isinstance(each, ast.Filter))
    for each in filters:
        if any(name not in bound for name in used_in(each)):
            raise NotIncremental("a filter in the WINDOW needs what is bound outside it", each)
    return filters


# Aggregates -----------------------------------------------------------------------------------


def _aggregated(
    sub: ast.SubSelect, window: ast.Iri | ast.Variable, elements: Iterable[ast.Pattern]
) -> StreamPart:
    """Return the star in a sub-query, with the aggregates that the sub-query computes of it."""
    key = _key(sub.query)
    _check_clauses(sub.query)
    part = _plain(window, tuple(elements))
    pattern = variables_of(part.pattern)
    if key.name not in pattern:
        raise NotIncremental(f"nothing in the WINDOW binds ?{key.name}, which it groups by", key)
    columns = _columns(sub, key, pattern)
    return StreamPart(
        part.window, part.pattern, part.filters, Aggregation(key.name, columns, tuple(pattern))
    )


def _key(query: ast.Query) -> ast.Variable:
    """Return the one variable by which a sub-query groups."""
    aggregates = any(isinstance(node, ast.Aggregate) for node in ast.walk(query.form))
    if not query.group_by:
        what = (
            "aggregates the whole window"
            if aggregates
            else "selects in a query of its own, without GROUP BY"
        )
        raise NotIncremental(f"it {what}", query.form)
    if len(query.group_by) > 1:
        raise NotIncremental("it groups by several keys", query.group_by[1])
    (key,) = query.group_by
    if not isinstance(key, ast.Variable):
        raise NotIncremental("it groups by an expression", key)
    return key


def _check_clauses(query: ast.Query) -> None:
    """Raise if a sub-query has clauses that drop or add groups."""
    assert isinstance(query.form, ast.Select)
    if query.having:
        raise NotIncremental(
            "HAVING leaves out some of the groups (a FILTER around a sub-query may)",
            query.having[0],
        )
    if query.form.duplicates:
        raise NotIncremental(f"it selects {query.form.duplicates} groups", query.form)
    if query.order or query.limit is not None or query.offset is not None:
        raise NotIncremental(
            "the sub-query orders or cuts its groups", query.order[0] if query.order else query.form
        )
    if query.values:
        raise NotIncremental("it also needs static data", query.values)


def _columns(sub: ast.SubSelect, key: ast.Variable, pattern: Names) -> tuple[AggregateColumn, ...]:
    assert isinstance(sub.query.form, ast.Select)
    items = sub.query.form.projection
    if key not in items:
        raise NotIncremental(
            f"the sub-query does not select ?{key.name}, which it groups by", sub.query.form
        )
    columns = tuple(_column(item, pattern) for item in items if isinstance(item, ast.Assignment))
    if not columns:
        raise NotIncremental("it groups, but aggregates nothing", sub.query.form)
    return columns


def _column(item: ast.Assignment, pattern: Names) -> AggregateColumn:
    aggregate, name = item.expression, item.variable.name
    if not isinstance(aggregate, ast.Aggregate):
        raise NotIncremental(
            f"the sub-query computes ?{name}, which is not an aggregate alone", item
        )
    function = aggregate.function.upper()
    if aggregate.function not in KEPT_UP:
        raise NotIncremental(f"{function} is not kept up to date as events come and go", aggregate)
    if aggregate.distinct:
        raise NotIncremental(
            f"{function}(DISTINCT …) is not kept up to date as events come and go", aggregate
        )
    of = aggregate.argument
    if of is not None and not isinstance(of, ast.Variable):
        raise NotIncremental(f"{function} is of an expression", aggregate)
    if of is not None and of.name not in pattern:
        raise NotIncremental(
            f"nothing in the WINDOW binds ?{of.name}, which {function} is of", aggregate
        )
    # Every solution of a star binds all its variables, so counting one of them is counting
    # solutions.
    return AggregateColumn(
        name, aggregate.function, None if of is None or function == "COUNT" else of.name
    )
