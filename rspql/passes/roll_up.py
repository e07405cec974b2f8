"""Roll up groups of a join: aggregate per key of the stream, and add up by what the remotes say.

The query::

    SELECT ?city (SUM(?n) AS ?sum)
    { WINDOW :w { ?user :mentions ?n } SERVICE :people { ?user :city ?city } }
    GROUP BY ?city ORDER BY DESC(?sum) LIMIT 3

is planned as::

    SELECT ?city ?sum
    { { SELECT ?user (SUM(?n) AS ?sum) { WINDOW :w { ?user :mentions ?n } } GROUP BY ?user }
      SERVICE :people { ?user :city ?city } }
    ORDER BY DESC(?sum) LIMIT 3

whose rows are added up by ``?city`` before they are ranked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rspql import ast
from rspql.passes.beside_windows import joins_more
from rspql.passes.nest_groups import nest_groups
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.read_aggregates import KEPT_UP
from rspql.passes.read_stream import read_stream
from rspql.passes.recognise_topk import Ranking, recognise_topk
from rspql.plan import RollUp
from rspql.scope import Names, used_in, visible


@dataclass(frozen=True)
class RolledUp:
    """Query over what is aggregated per key of the stream, its ranking, and what it is added by."""

    query: ast.Query
    ranking: Ranking
    roll_up: RollUp


def groups_the_join(query: ast.Query) -> bool:
    """Return True if a query groups solutions of its windows that are joined with more."""
    if not isinstance(query.form, ast.Select) or query.where is None:
        return False
    clauses: Sequence[ast.Node] = (*query.form.projection, *query.order)
    aggregates = any(isinstance(node, ast.Aggregate) for each in clauses for node in ast.walk(each))
    return joins_more(query) and bool(query.group_by or query.having or aggregates)


def rolled_up(query: ast.Query) -> RolledUp:
    """Return the query over aggregates per key that a query which groups its join is planned as.

    Raises :class:`NotIncremental` if what it aggregates is not the stream's alone.
    """
    outer = nest_groups(query, joined=True)
    assert outer.where is not None
    (element,) = outer.where.elements[:1]
    if outer is query or not isinstance(element, ast.SubSelect):
        raise NotIncremental("it orders groups by what is neither grouped by nor aggregated", query)
    sub = element.query
    assert sub.where is not None
    window, rest = _split(sub.where.elements)
    stream = read_stream(window).solved
    window, rest = _with_own_filters(window, rest, stream)
    keys = tuple(_name_of(key) for key in sub.group_by)
    computed = [key for key in sub.group_by if isinstance(key, ast.Assignment)]
    beside = ast.Group((*rest, *computed))
    used = used_in(beside)
    stream_keys = tuple(name for name in stream if name in used or name in keys)
    for key in keys:
        if key not in stream and key not in visible(beside):
            raise NotIncremental(f"nothing binds ?{key}, which it groups by", sub)
    columns = _Columns(sub, stream)
    having = [ast.Filter(columns.over(each, keys), span=each.span) for each in sub.having]
    inner = ast.Query(
        ast.Select((*map(ast.Variable, stream_keys), *columns.all), span=query.form.span),
        ast.Group((window,)),
        group_by=tuple(map(ast.Variable, stream_keys)),
        span=query.span,
    )
    where = ast.Group((ast.SubSelect(inner, span=query.span), *beside.elements, *having))
    planned = replace(outer, where=where)
    ranking = recognise_topk(planned, [])
    assert isinstance(ranking, Ranking), "it has the ORDER BY and LIMIT of the query"
    return RolledUp(planned, ranking, RollUp(keys))


def _split(
    elements: tuple[ast.Pattern, ...],
) -> tuple[ast.WindowPattern, list[ast.Pattern]]:
    """Return the one WINDOW of a group that is aggregated, and what stands beside it."""
    windows = [each for each in elements if isinstance(each, ast.WindowPattern)]
    if len(windows) != 1:
        raise NotIncremental("it groups a join of other patterns than one WINDOW", elements[0])
    return windows[0], [each for each in elements if each is not windows[0]]


def _with_own_filters(
    window: ast.WindowPattern, rest: list[ast.Pattern], stream: Names
) -> tuple[ast.WindowPattern, list[ast.Pattern]]:
    """Return the WINDOW with those filters beside it that need its variables alone."""
    own = [
        each
        for each in rest
        if isinstance(each, ast.Filter)
        and all(name in stream for name in used_in(each))
        and not any(isinstance(node, ast.Exists) for node in ast.walk(each))
    ]
    group = replace(window.group, elements=(*window.group.elements, *own))
    return replace(window, group=group), [each for each in rest if each not in own]


def _name_of(key: ast.Expression | ast.Assignment) -> str:
    named = key.variable if isinstance(key, ast.Assignment) else key
    assert isinstance(named, ast.Variable), "nesting gives names to keys"
    return named.name


class _Columns:
    """Aggregates of the stream's values, each with its name."""

    def __init__(self, sub: ast.Query, stream: Names) -> None:
        assert isinstance(sub.form, ast.Select)
        self._stream = stream
        taken = {node.name for node in ast.walk(sub) if isinstance(node, ast.Variable)}
        self._fresh = (
            name for number in itertools.count(1) if (name := f"having{number}") not in taken
        )
        self.all = [each for each in sub.form.projection if isinstance(each, ast.Assignment)]
        for each in self.all:
            self._check(each.expression)

    def over(self, condition: ast.Expression, keys: Sequence[str]) -> ast.Expression:
        """Return a condition on groups with names in place of its aggregates."""
        for name in _outside_aggregates(condition):
            raise NotIncremental(
                f"HAVING needs ?{name}, which is grouped by"
                if name in keys
                else f"HAVING needs ?{name}, which is neither grouped by nor aggregated",
                condition,
            )

        def change(node: ast.Node) -> ast.Node:
            return self._named(node) if isinstance(node, ast.Aggregate) else node

        return ast.rewritten(condition, change)

    def _named(self, aggregate: ast.Aggregate) -> ast.Variable:
        for each in self.all:
            if each.expression == aggregate:
                return each.variable
        self._check(aggregate)
        made = ast.Assignment(aggregate, ast.Variable(next(self._fresh)), span=aggregate.span)
        self.all.append(made)
        return made.variable

    def _check(self, aggregate: ast.Expression) -> None:
        assert isinstance(aggregate, ast.Aggregate)
        if aggregate.function not in KEPT_UP:
            name = aggregate.function.upper()
            raise NotIncremental(f"{name} of a join's groups is not kept up to date", aggregate)
        if aggregate.distinct and aggregate.function not in ("min", "max"):
            raise NotIncremental("it aggregates distinct values of a join's groups", aggregate)
        for name in used_in(aggregate):
            if name not in self._stream:
                raise NotIncremental(f"it aggregates ?{name}, which a SERVICE says", aggregate)


def _outside_aggregates(expression: ast.Expression) -> Iterator[str]:
    """Yield the variables that an expression needs besides its aggregates'."""
    pending: list[ast.Node] = [expression]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Variable):
            yield node.name
        pending += [] if isinstance(node, ast.Aggregate) else list(ast.children(node))
