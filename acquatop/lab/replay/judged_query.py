"""Query whose rows are the right ones: all of them, in order, with what ties and groups them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from acquatop.plan.bound import BoundQuery, BoundWindowed
from rspql import ast
from rspql.forms import rows_of
from rspql.plan import TopKPlan, WindowedPlan
from rspql.scope import used_in, visible

_OWN = "acquatopjudged"
"""Beginning of the names of columns that are added."""


@dataclass(frozen=True)
class JudgedQuery:
    """Plan of the right rows, without any limit, and the columns that say how they are judged.

    ``shown`` are the columns of the query itself, ``keys`` those of its order (None if unknown) and
    ``per`` those of its groups. With ``needs_score`` a row without its first key is none. If it
    ``is_whole``, the answer is judged as it is, rows, triples or a boolean.
    """

    plan: WindowedPlan
    shown: tuple[str, ...]
    keys: tuple[str | None, ...]
    per: tuple[str, ...]
    offset: int
    with_ties: bool
    needs_score: bool
    is_whole: bool = False


def judged_query(whole: BoundWindowed, bound: BoundQuery | BoundWindowed) -> JudgedQuery:
    """Return the query for the right rows of a query over whole windows."""
    plan = replace(whole.plan.evaluated, exact=None, output="RSTREAM")
    is_scored = isinstance(bound, BoundQuery)
    query = rows_of(plan.query) if is_scored else plan.query
    if not isinstance(query.form, ast.Select):
        return JudgedQuery(plan, (), (), (), 0, False, False, is_whole=True)
    items = query.form.projection or tuple(map(ast.Variable, visible(query.where or ast.Group(()))))
    shown = tuple(map(_name, items))
    is_distinct = query.form.duplicates == "DISTINCT"
    order = _order(query, bound.plan, shown) if isinstance(bound, BoundQuery) else query.order
    keys = list(_keys(order, shown, is_distinct=is_distinct))
    per = tuple(each.name for each in query.cut.per) if query.cut else ()
    added = [each for each in keys if isinstance(each, ast.Assignment)]
    groups = [ast.Variable(name) for name in dict.fromkeys(per) if name not in shown]
    form = replace(query.form, projection=(*items, *groups, *added))
    return JudgedQuery(
        replace(plan, query=replace(query, form=form, limit=None, offset=None, cut=None)),
        shown,
        tuple(None if each is None else _name(each) for each in keys),
        per,
        query.offset or 0,
        bool(query.cut and query.cut.with_ties),
        # What is unbound has a place in an order of terms.
        isinstance(bound, BoundQuery) and not bound.plan.score.only_place,
    )


def _order(
    query: ast.Query, plan: TopKPlan, shown: Sequence[str]
) -> tuple[ast.OrderCondition, ...]:
    """Return the keys of a query's order: the score as it is shown, if it is, and further ones."""
    further = plan.finish.keys if plan.finish else ()
    score = plan.score.variable
    if score is None or score not in shown:
        return query.order
    return (ast.OrderCondition(ast.Variable(score)), *further)


def _keys(
    order: Sequence[ast.OrderCondition], shown: Sequence[str], *, is_distinct: bool
) -> Iterator[ast.Variable | ast.Assignment | None]:
    for number, each in enumerate(order):
        expression = each.expression
        if isinstance(expression, ast.Variable) and expression.name in shown:
            yield expression
        elif is_distinct and not used_in(expression).keys() <= set(shown):
            # Selected, it could make equal rows differ.
            yield None
        else:
            yield ast.Assignment(expression, ast.Variable(f"{_OWN}{number}"))


def _name(item: ast.Variable | ast.Assignment) -> str:
    return item.variable.name if isinstance(item, ast.Assignment) else item.name
