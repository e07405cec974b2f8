"""Binding of a query for the top k of a table: whether its service can say what it needs."""

from __future__ import annotations

from collections.abc import Iterator

from acquatop.catalog.remotes import SqlSource, TableSource
from acquatop.catalog.vocabulary import TableStrategy
from acquatop.plan.bound import BoundTable, BoundWindowed
from acquatop.plan.remote_query import star_in
from acquatop.plan.table_sql import in_sql
from replica.remotes.records import Star
from rspql.diagnostics import Diagnostic, QueryError


def bound_table(bound: BoundWindowed, text: str, file: str) -> BoundTable:
    """Return a query bound as one for a table.

    Raises :class:`~rspql.diagnostics.QueryError` if its service cannot say what it needs.
    """
    table = BoundTable(bound.name, bound.plan, bound.windows, bound.remotes, bound.graphs)
    if problems := list(_problems(table)):
        raise QueryError(problems, text, file)
    return table


def _problems(bound: BoundTable) -> Iterator[Diagnostic]:
    service, ranking = bound.service, bound.ranking
    span, source = ranking.pattern.span, bound.service.source
    if isinstance(source, TableSource) and source.time is not None:
        message = f"<{service.iri}> is replayed along with a stream, and there is none"
        yield Diagnostic("unsupported", message, span)
    if service.feed is None and not bound.can_ask_for_best:
        message = f"<{service.iri}> has no feed, and cannot be asked for its best"
        hint = "give it a feed, or ask an endpoint (sparql) or a database (sql) with a table"
        yield Diagnostic("unsupported", message, span, hint)
    if bound.structure.strategy == TableStrategy.RECOMPUTE and not bound.can_ask_for_best:
        message = f"<{service.iri}> cannot be asked for its best at each answer"
        yield Diagnostic("unsupported", message, span, 'leave strategy = "recompute" out')
    if service.feed is not None:
        star = star_in(service.feed.mapping, ranking.pattern.group, ranking.key)
        if not isinstance(star, Star):
            yield star
    if isinstance(source, SqlSource) and bound.can_ask_for_best:
        star = star_in(source.mapping, ranking.pattern.group, ranking.key)
        if not isinstance(star, Star):
            yield star
        elif in_sql(ranking, source, star) is None:
            message = "the database cannot order by this score, or decide these filters"
            hint = "use a view of the database with the score as a column, or + - * and comparisons"
            yield Diagnostic("unsupported", message, span, hint)
