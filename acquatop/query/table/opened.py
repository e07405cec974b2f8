"""Tables of an engine, each shared by the queries that rank it alike."""

from __future__ import annotations

import threading
from collections.abc import Callable

from acquatop.plan.bound import BoundTable
from acquatop.query.table.merits import Merits
from acquatop.query.table.shared_table import SharedTable
from acquatop.query.table.source import HeldTable, RowSource
from acquatop.refresh.open_replicas import Replicas
from acquatop.topk.papers.views.table_view import TableView
from acquatop.topk.refill.controller import Controller, Tuning
from replica.clocks import Clock
from replica.store import Solution


class OpenTables:
    """Registry of the tables in use; thread-safe."""

    def __init__(self, replicas: Replicas, clock: Clock) -> None:
        self._replicas = replicas
        self._clock = clock
        self._tables: dict[str, SharedTable] = {}
        self._lock = threading.Lock()

    def join(self, bound: BoundTable) -> tuple[SharedTable, Callable[[], None]]:
        """Return the table of a query, opened if it is the first, and what to call at its end."""
        key = key_of(bound)
        with self._lock:
            table = self._tables.get(key)
            if table is None:
                table = self._tables[key] = self._opened(bound)
            table.join(bound.name, bound.ranking.k)
        return table, lambda: self._leave(key, table, bound.name)

    def _leave(self, key: str, table: SharedTable, name: str) -> None:
        with self._lock:
            if table.leave(name) and self._tables.get(key) is table:
                del self._tables[key]

    def _opened(self, bound: BoundTable) -> SharedTable:
        ranking, service = bound.ranking, bound.service
        merits = Merits(ranking, bound.plan.functions)
        remote, feed = self._replicas.open_ranked(bound)
        try:
            source: RowSource = remote or self._held(bound, merits)
        except BaseException:
            if feed is not None:
                feed.stop()
            raise
        items = service.refresh.budget.items
        largest = Tuning().limit if remote is None else max(ranking.k, items - 1)
        tuning = Tuning(limit=largest)
        view = TableView(Controller(ranking.k, bound.kmax, tuning), self._clock)
        return SharedTable(
            ranking.key,
            merits,
            source,
            view,
            feed=feed,
            recomputes=not bound.keeps_view,
            spare=service.refresh.n,
            clock=self._clock,
        )

    def _held(self, bound: BoundTable, merits: Merits) -> HeldTable:
        held = HeldTable(bound.ranking.key, merits)
        for page in self._replicas.rows_of(bound):
            changes: dict[str, list[Solution]] = {}
            for each in page:
                changes.setdefault(each[bound.ranking.key], []).append(each)
            held.take(changes)
        return held


def key_of(bound: BoundTable) -> str:
    """Return the key of queries that rank a table alike: all but their k and their pace."""
    ranking = bound.ranking
    alike = (ranking.key, ranking.variables, ranking.ranked, ranking.rank, ranking.descending)
    return repr((bound.service.iri, bound.keeps_view, alike))
