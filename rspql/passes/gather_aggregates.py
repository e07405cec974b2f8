"""Gather aggregates: compute those that only an answer shows of the solutions of its groups.

MIN and MAX of terms, GROUP_CONCAT and SAMPLE are not kept up to date as events come and go. If
neither score nor filters need them, they are computed at a close, for the groups of the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rspql import ast
from rspql.passes.check_growth import OF_ROWS, check_growth
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.plan_windowed import VOLATILE, evaluable
from rspql.passes.recognise_topk import Ranking
from rspql.plan import TopKPlan
from rspql.scope import selected, used_in
from rspql.scoring import FunctionRegistry

_GATHERED = ("group_concat", "sample", "min", "max")
_COUNT = ast.Assignment(ast.Aggregate("count", None), ast.Variable("count of solutions"))
"""Aggregate of groups that have no other."""


@dataclass(frozen=True)
class Gathering:
    """Query without the aggregates that are computed at a close, and these."""

    query: ast.Query
    all: tuple[ast.Assignment, ...]


def without_gathered(query: ast.Query, ranking: Ranking) -> Gathering | None:
    """Return a query whose groups lack what only an answer shows; None if there is nothing.

    A first key that is ordered as a term is one of these: no other decides the places of groups.
    """
    subs = [node for node in ast.walk(query.where or query) if isinstance(node, ast.SubSelect)]
    if len(subs) != 1 or ranking.expression is None:
        return None
    (sub,) = subs
    assert isinstance(sub.query.form, ast.Select)
    beside = [each for each in _nodes_beside(query, sub) if not isinstance(each, ast.SubSelect)]
    scored = () if ranking.only_place else (ranking.expression,)
    needed = {name for node in (*scored, *beside) for name in used_in(node)}
    items = sub.query.form.projection
    gathered = tuple(
        each
        for each in items
        if isinstance(each, ast.Assignment)
        and isinstance(each.expression, ast.Aggregate)
        and each.expression.function in _GATHERED
        and each.variable.name not in needed
    )
    if not gathered:
        return None
    kept = tuple(each for each in items if each not in gathered)
    if not any(isinstance(each, ast.Assignment) for each in kept):
        kept = (*kept, replace(_COUNT, span=sub.span))
    form = replace(sub.query.form, projection=kept)
    inner = replace(sub, query=replace(sub.query, form=form))
    return Gathering(ast.rewritten(query, lambda node: inner if node == sub else node), gathered)


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
    plan: TopKPlan,
    query: ast.Query,
    gathered: Sequence[ast.Assignment],
    functions: FunctionRegistry,
) -> TopKPlan:
    """Return the plan of a query that computes some aggregates at a close.

    Raises :class:`NotIncremental` if these need more than the solutions of a group.
    """
    if not gathered:
        return plan
    first = gathered[0]
    if plan.aggregate is None or plan.parts or plan.roll_up:
        raise NotIncremental("aggregates of terms are of the groups of one window", first)
    if plan.aggregate.is_distinct:
        raise NotIncremental("it aggregates distinct values beside terms", first)
    for each in gathered:
        _check(each, plan)
    arguments = [
        replace(each, expression=each.expression.argument)
        for each in gathered
        if isinstance(each.expression, ast.Aggregate) and each.expression.argument
    ]
    check_growth(arguments, OF_ROWS)
    return replace(
        plan,
        gathered=tuple(evaluable(each, functions) for each in gathered),
        projection=tuple(selected(query)),
    )


def _check(gathered: ast.Assignment, plan: TopKPlan) -> None:
    assert isinstance(gathered.expression, ast.Aggregate)
    for node in ast.walk(gathered.expression):
        if isinstance(node, ast.Exists) or (
            isinstance(node, ast.Call) and node.function in VOLATILE
        ):
            raise NotIncremental("an aggregate needs more than its group", node)
    for name in used_in(gathered):
        if name not in plan.stream_variables and name != gathered.variable.name:
            raise NotIncremental(f"an aggregate is of ?{name}, which is computed", gathered)
