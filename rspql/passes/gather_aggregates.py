"""Gather aggregates: compute those that only an answer shows of the solutions of its groups.

MIN and MAX of terms, GROUP_CONCAT and SAMPLE are not kept up to date as events come and go. If
neither score nor filters need them, they are computed at a close, for the groups of the answer: if
HAVING needs them, for the best groups until there are enough for which it holds.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from rspql import ast
from rspql.passes.check_growth import OF_ROWS, check_growth
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.plan_windowed import VOLATILE, evaluable
from rspql.passes.recognise_topk import Ranking
from rspql.plan import Finish, TopKPlan
from rspql.scope import selected, used_in
from rspql.scoring import FunctionRegistry

_GATHERED = ("group_concat", "sample", "min", "max")
_COUNT = ast.Assignment(ast.Aggregate("count", None), ast.Variable("count of solutions"))
"""Aggregate of groups that have no other."""


@dataclass(frozen=True)
class Gathering:
    """Query without the aggregates that are computed at a close, these, and what HAVING asks."""

    query: ast.Query
    all: tuple[ast.Assignment, ...] = ()
    having: ast.Expression | None = None


def gatherings(query: ast.Query, ranking: Ranking) -> Iterator[Gathering]:
    """Yield queries whose groups lack what only an answer shows, then also what HAVING asks.

    A first key that is ordered as a term is one of these: no other decides the places of groups.
    """
    subs = [node for node in ast.walk(query.where or query) if isinstance(node, ast.SubSelect)]
    if len(subs) != 1 or ranking.expression is None:
        return
    (sub,) = subs
    beside = [each for each in _nodes_beside(query, sub) if not isinstance(each, ast.SubSelect)]
    scored = () if ranking.only_place else (ranking.expression,)
    needed = {name for node in (*scored, *beside) for name in used_in(node)}
    yield from _without(query, sub, sub.query, needed)
    asked = [each for each in sub.query.having if any(map(_is_gathered, ast.walk(each)))]
    if asked:
        named, conditions = _named(sub.query, asked)
        yield from _without(query, sub, named, needed, reduce(_both, conditions))


def _without(
    query: ast.Query,
    sub: ast.SubSelect,
    inner: ast.Query,
    needed: Collection[str],
    having: ast.Expression | None = None,
) -> Iterator[Gathering]:
    """Yield a query with other groups, which lack what is gathered, unless that is nothing."""
    assert isinstance(inner.form, ast.Select)
    items = inner.form.projection
    gathered = tuple(
        each
        for each in items
        if isinstance(each, ast.Assignment)
        and _is_gathered(each.expression)
        and each.variable.name not in needed
    )
    if not gathered:
        return
    kept = tuple(each for each in items if each not in gathered)
    if not any(isinstance(each, ast.Assignment) for each in kept):
        kept = (*kept, replace(_COUNT, span=sub.span))
    groups = replace(sub, query=replace(inner, form=replace(inner.form, projection=kept)))
    changed = ast.rewritten(query, lambda node: groups if node == sub else node)
    yield Gathering(changed, gathered, having)


def _is_gathered(node: ast.Node) -> bool:
    return isinstance(node, ast.Aggregate) and node.function in _GATHERED


def _named(
    groups: ast.Query, asked: Sequence[ast.Expression]
) -> tuple[ast.Query, list[ast.Expression]]:
    """Return groups that select what some conditions of HAVING ask, and these in its names."""
    assert isinstance(groups.form, ast.Select)
    taken = {node.name for node in ast.walk(groups) if isinstance(node, ast.Variable)}
    free = (name for at in itertools.count(1) if (name := f"having{at}") not in taken)
    items = list(groups.form.projection)
    names: dict[ast.Node, ast.Node] = {
        each.expression: each.variable
        for each in items
        if isinstance(each, ast.Assignment) and isinstance(each.expression, ast.Aggregate)
    }
    for node in (node for each in asked for node in ast.walk(each)):
        if isinstance(node, ast.Aggregate) and node not in names:
            names[node] = variable = ast.Variable(next(free))
            items.append(ast.Assignment(node, variable, span=node.span))
    conditions = [ast.rewritten(each, lambda node: names.get(node, node)) for each in asked]
    form = replace(groups.form, projection=tuple(items))
    others = tuple(each for each in groups.having if each not in asked)
    return replace(groups, form=form, having=others), conditions


def _both(one: ast.Expression, other: ast.Expression) -> ast.Expression:
    return ast.Binary("&&", one, other)


def _nodes_beside(query: ast.Query, sub: ast.SubSelect) -> list[ast.Node]:
    """Return the patterns around a sub-query, none of which has it within."""
    found: list[ast.Node] = []
    pending: list[ast.Node] = list(query.where.elements) if query.where else []
    while pending:
        node = pending.pop()
        if sub in ast.walk(node):
            pending += [] if node == sub else list(ast.children(node))
        else:
            found.append(node)
    return found


def with_gathered(
    plan: TopKPlan, query: ast.Query, gathering: Gathering, functions: FunctionRegistry
) -> TopKPlan:
    """Return the plan of a query that computes some aggregates at a close.

    Raises :class:`NotIncremental` if these need more than the solutions of a group.
    """
    gathered, finish = gathering.all, plan.finish
    if not gathered:
        return plan
    first = gathered[0]
    if plan.aggregate is None or plan.parts or plan.roll_up:
        raise NotIncremental("aggregates of terms are of the groups of one window", first)
    if plan.aggregate.is_distinct:
        raise NotIncremental("it aggregates distinct values beside terms", first)
    for each in gathered:
        _check(each, plan)
    if gathering.having is not None:
        if plan.service is not None:
            raise NotIncremental("HAVING asks for aggregates of terms beside a SERVICE", first)
        _check_whole(gathering.having)
        finish = replace(finish or Finish(), holds=evaluable(gathering.having, functions))
    arguments = [
        replace(each, expression=each.expression.argument)
        for each in gathered
        if isinstance(each.expression, ast.Aggregate) and each.expression.argument
    ]
    check_growth(arguments, OF_ROWS)
    return replace(
        plan,
        gathered=tuple(evaluable(each, functions) for each in gathered),
        finish=finish,
        projection=tuple(selected(query)),
    )


def _check_whole(expression: ast.Expression) -> None:
    """Raise :class:`NotIncremental` for an expression that is not of a group alone."""
    for node in ast.walk(expression):
        if isinstance(node, ast.Exists) or (
            isinstance(node, ast.Call) and node.function in VOLATILE
        ):
            raise NotIncremental("an aggregate needs more than its group", node)


def _check(gathered: ast.Assignment, plan: TopKPlan) -> None:
    assert isinstance(gathered.expression, ast.Aggregate)
    _check_whole(gathered.expression)
    for name in used_in(gathered):
        if name not in plan.stream_variables and name != gathered.variable.name:
            raise NotIncremental(f"an aggregate is of ?{name}, which is computed", gathered)
