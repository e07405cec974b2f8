"""Lanes that the queries of one evaluation are in: one for each service whose budget they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acquatop.refresh.pool_lane import PoolLane
from acquatop.windows import Windows


class Lanes:
    """Lanes by the IRIs of their services; none if an evaluation shares nothing.

    Whoever has opened them is in them from then on, so that they stay open. ``windows`` are those
    that say when the queries are due; none if that is not known ahead.
    """

    def __init__(self, lanes: Mapping[str, PoolLane] = {}, windows: Sequence[Windows] = ()) -> None:
        self.by_service = lanes
        self._windows = windows
        self._queries: frozenset[str] = frozenset()

    def __len__(self) -> int:
        return len(self.by_service)

    def join(self, query: str, weight: float) -> None:
        """Let a query share the budgets."""
        self._queries |= {query}
        for each in self.by_service.values():
            each.join(query, weight, self._windows)

    def leave(self, query: str) -> None:
        """Let a query leave, if it is there."""
        for each in self.by_service.values() if query in self._queries else ():
            each.leave(query)
        self._queries -= {query}

    def close(self) -> None:
        """Let all leave."""
        for query in self._queries:
            self.leave(query)

    def expect(self, weight: float) -> None:
        """Note that queries of some weight are due at the close that is settled next."""
        for each in self.by_service.values():
            each.expect(weight)
