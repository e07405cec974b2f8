"""The best rows of a database's table, by a number that it computes."""

from __future__ import annotations

from dataclasses import dataclass

from replica.remotes.best import BestRows
from replica.remotes.sql import SqlRemote


@dataclass(frozen=True)
class SqlOrder:
    """Order of a table's rows, and the condition for those that count, both in SQL."""

    by: str
    where: str


class SqlBest:
    """Request for the first rows of a table in an order. Ties come in any order."""

    def __init__(self, remote: SqlRemote, order: SqlOrder) -> None:
        self._remote = remote
        self._clauses = f"WHERE {order.where} ORDER BY {order.by}"

    def best(self, count: int, timeout: float) -> BestRows:
        """Return the best ``count`` rows, with one query."""
        rows, found = self._remote.ordered(self._clauses, count, timeout)
        return BestRows(found, rows < count, ties_by_key=False)
