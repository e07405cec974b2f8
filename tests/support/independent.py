"""Separate structure per query: the baseline for sharing, and the fastest for few queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import FirstPart, IntArray, Rows, Scoring, Top
from acquatop.topk.pane_dominance import PaneDominance
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.shared.meta_query import MetaQuery
from acquatop.topk.shared.pending_arrivals import score
from acquatop.windows import Windows


@dataclass(frozen=True)
class _Solo:
    """A query, its candidates, and the first of its windows that is answered."""

    windows: Windows
    first: int
    structure: PaneDominance


class Independent:
    """One structure for each query; every arrival is added to each.

    Costs and memory are those of a single query, times the number of queries.

    >>> held, at = Independent(since=0), np.arange(1, 5)
    >>> (
    ...     held.join("wide", TopKRequest(Windows(4, 4, 0), 2)),
    ...     held.join("narrow", TopKRequest(Windows(2, 2, 0), 1)),
    ... )
    (0, 0)
    >>> _ = held.add(Rows(at, at, at, (np.array([9.0, 7.0, 1.0, 2.0]),)))
    >>> [(name, top.merits.tolist()) for name, top in held.advance(4)]
    [('narrow', [9.0]), ('wide', [9.0, 7.0]), ('narrow', [2.0])]
    """

    def __init__(self, since: int, scoring: Scoring | None = None) -> None:
        self.meta = MetaQuery(since)
        self.rejected = 0
        self._scoring = scoring or FirstPart()
        self._queries: dict[str, _Solo] = {}

    def join(self, name: str, asked: TopKRequest) -> int:
        """Add a query; return the first of its windows that is answered."""
        first = self.meta.join(name, asked)
        structure = PaneDominance(asked.k, 0, self._scoring, distinct=True, fixed=True)
        structure.close_before(first)
        self._queries[name] = _Solo(asked.windows, first, structure)
        return first

    def leave(self, name: str) -> None:
        """Remove a query."""
        self.meta.leave(name)
        del self._queries[name]

    def add(self, arrivals: Rows) -> IntArray:
        """Add arrivals and return the positions of the rejected: those without a merit."""
        if not len(arrivals):
            return np.empty(0, dtype=np.int64)
        scored, rejected = score(self._scoring, arrivals, self.meta.now)
        self.rejected += len(rejected)
        self.meta.note(int(arrivals.times.max()))
        rows = scored.rows
        if (rows.times[1:] < rows.times[:-1]).any():
            rows = rows.take(np.argsort(rows.times, kind="stable"))
        if len(rows):
            for query in self._queries.values():
                _hand_in(query, rows)
        return rejected

    def advance(self, until: int) -> Iterator[tuple[str, Top]]:
        """Advance time, and yield the answers of all windows that close by then."""
        self.meta.go_on(until)
        for due in self.meta.take(until):
            if due in self.meta:
                structure = self._queries[due.name].structure
                top = structure.top(due.window)
                structure.close_before(due.window + 1)
                yield due.name, top

    def __len__(self) -> int:
        return sum(len(query.structure) for query in self._queries.values())

    @property
    def nbytes(self) -> int:
        """Bytes of the columns held, without the objects that they refer to."""
        return sum(query.structure.nbytes for query in self._queries.values())

    def _check(self) -> None:
        """Assert every invariant."""
        self.meta._check()
        for query in self._queries.values():
            query.structure._check()


def _hand_in(query: _Solo, rows: Rows) -> None:
    """Add arrivals in time order to a query's structure, pane by pane."""
    windows, start = query.windows, 0
    while start < len(rows):
        time = int(rows.times[start])
        first, last = windows.first(time), windows.last(time)
        # A pane ends when the first of its windows closes, or the next opens.
        ends = min(windows.bounds(first)[1], windows.bounds(last + 1)[0])
        stop = int(np.searchsorted(rows.times, ends, side="right"))
        if max(first, query.first) <= last:
            query.structure.add(max(first, query.first), last, rows.take(slice(start, stop)))
        start = stop
