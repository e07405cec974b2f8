"""One continuous query by itself: events in, an answer out at every window close."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from acquatop.answer.answer import Answer
from acquatop.ingest.reduce.job import reduced
from acquatop.plan.bind import BoundQuery
from acquatop.query.aggregates.executor_ranking import Scattered
from acquatop.query.aggregates.ranking import Aggregated
from acquatop.query.evaluation import QueryGroup
from acquatop.query.topk.content import TopKN
from replica.clocks import Clock
from replica.maintainer import Maintainer
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from replica.store import ReplicaStore


class ContinuousQuery:
    """A query at work, free of any runtime: whoever has events hands them in and takes the answers.

    It reads one stream; that its methods are told which is for queries that read several. Not safe
    for use by several threads at once.
    """

    def __init__(
        self,
        bound: BoundQuery,
        maintainer: Maintainer[ReplicaStore] | None,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        rankers: RankerRegistry = DEFAULT_RANKERS,
        random: np.random.Generator | None = None,
    ) -> None:
        self.name = bound.name
        self.slide_ms = bound.windows.slide_ms
        self.group = QueryGroup(bound, maintainer, clock=clock, wall_clock=wall_clock, rankers=rankers, random=random)
        self._bound = bound
        self.group.join(bound)

    def add(self, stream: str, records: pa.RecordBatch) -> None:
        """Take in a batch of decoded records."""
        self.group.add(list(reduced(records, self.group.reducers())))

    def start_after(self, stream: str, time_ms: int) -> None:
        """Answer only for windows that open at a time or after it: earlier ones began without this query."""
        self.group.leave(self.name)
        self.group.join(self._bound, time_ms)

    def advance(
        self, stream: str, watermark_ms: int, due_at: float | None = None, longest_wait: float = math.inf
    ) -> Iterator[Answer]:
        """Yield the answers of all windows that close at the watermark or before it: see :class:`Group`."""
        return self.group.advance(watermark_ms, due_at, longest_wait)

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers of all windows that still hold events, as if time went on after the last of them."""
        return self.group.finish()

    def close(self) -> None:
        """Let go of what tells of the remote's changes: the query is over."""
        self.group.close()

    @property
    def operator(self) -> Aggregated | Scattered | TopKN:
        """What keeps the query's candidates."""
        return self.group.members[self.name].operator
