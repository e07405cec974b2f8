"""Base of structures that queries share: the queries, and arrivals before their first close."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import FirstPart, IntArray, Rows, Scoring
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.shared.meta_query import MetaQuery
from acquatop.topk.shared.pending_arrivals import PendingArrivals, score


class SharedArrivals:
    """Arrivals after the moment that time has reached, for all queries of ``meta``."""

    def __init__(self, since: int, scoring: Scoring | None, room: int) -> None:
        self.meta = MetaQuery(since)
        self.rejected = 0
        self._scoring = scoring or FirstPart()
        self._pending = PendingArrivals(room)

    def join(self, name: str, asked: TopKRequest) -> int:
        """Add a query; return the first of its windows that is answered."""
        return self.meta.join(name, asked)

    def add(self, arrivals: Rows) -> IntArray:
        """Add arrivals and return the positions of the rejected: those without a merit."""
        if not len(arrivals):
            return np.empty(0, dtype=np.int64)
        scored, rejected = score(self._scoring, arrivals, self.meta.now)
        self.rejected += len(rejected)
        self.meta.note(int(arrivals.times.max()))
        self._pending.append(scored.merits, scored.rows)
        self._pending.thin(self.meta.most, self.meta.ends)
        return rejected
