"""Query for the top k of a table that changes, with the service that has it found."""

from __future__ import annotations

from dataclasses import dataclass

from acquatop.catalog.catalog import Service
from acquatop.catalog.remotes import SparqlSource, SqlSource
from acquatop.catalog.vocabulary import TableStrategy
from acquatop.plan.bound.windowed import BoundWindowed
from acquatop.plan.strategy import Choice
from replica.remotes.sql_statement import SqlStatement
from rspql.diagnostics import Diagnostic
from rspql.plan import TableRanking


@dataclass(frozen=True)
class BoundTable(BoundWindowed):
    """Query without a window: the only one is the clock's, and the only remote is the table's."""

    @property
    def service(self) -> Service:
        """Service that has the table."""
        return self.remotes[0].service

    @property
    def ranking(self) -> TableRanking:
        """Ranking of the table."""
        ranking = self.plan.table
        assert ranking is not None, "only such plans are bound so"
        return ranking

    @property
    def can_ask_for_best(self) -> bool:
        """True if the service orders by a score itself, so that its best rows can be asked for."""
        source = self.service.source
        if isinstance(source, SqlSource):
            return SqlStatement(source.statement, source.mapping.key.path, "qmark").is_table
        return isinstance(source, SparqlSource)

    @property
    def keeps_view(self) -> bool:
        """True if the best rows are kept, and changed by what the feed says."""
        return self.structure.strategy == TableStrategy.VIEW

    @property
    def kmax(self) -> int:
        """Number of rows that the view begins with."""
        return self.ranking.k + (self.service.refresh.n if self.keeps_view else 0)

    @property
    def structure(self) -> Choice:
        """Structure that keeps the best rows, and the reason."""
        service = self.service
        if service.strategy is not None:
            return Choice(service.strategy, "the catalog asks for it", {})
        if service.feed is None:
            return Choice(TableStrategy.RECOMPUTE, "no feed says what changes", {})
        return Choice(TableStrategy.VIEW, "the feed says what changes", {})

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warning if the budget does not buy the best k."""
        items, needed = self.service.refresh.budget.items, self.ranking.k + 1
        if not self.can_ask_for_best or items >= needed:
            return ()
        message = (
            f"an evaluation may ask for {items} items, and the best {needed - 1} need {needed}"
        )
        span = self.ranking.pattern.span
        hint = f"set items = {needed} or more"
        return (Diagnostic("small-budget", message, span, hint, severity="warning"),)
