"""Evaluation of a query whose windows count elements: their positions are its times."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from acquatop.answer.answer import Answer, Shown, Status
from acquatop.answer.unanswered import Unanswered
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.job import reduced
from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.ingest.reduce.records import RECORDS
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundWindowed
from acquatop.plugins import RANKERS, family_of
from acquatop.query.contract import Evaluation, Sizes, Tick
from acquatop.query.counters import WindowCounters
from acquatop.query.element_positions import Positions, answered_until
from acquatop.query.evaluation import TopKEvaluation
from acquatop.query.per_element import PerElementEvaluation
from acquatop.query.sparql.evaluation import SparqlEvaluation
from acquatop.refresh.lanes import Lanes
from acquatop.refresh.open_replicas import Joined
from acquatop.topk.snapshot import pack_parts, reading, unpack_parts
from acquatop.topk.strategies import Family
from replica.clocks import Clock
from replica.maintainer import Maintainer
from replica.rankers import RankerRegistry
from replica.store import SolutionStore

OpenWhole = Callable[..., SparqlEvaluation]
"""Function that opens the evaluation of whole windows."""
_Open = Callable[[BoundCounted, Clock, Positions], Evaluation]


class CountedEvaluation:
    """Query over the last n elements of a stream, answered at every m-th of them.

    It may have several such windows over one stream.

    Elements are the stream's good records, including those that the query's pattern does not match.
    They are counted in the order of :class:`~acquatop.query.element_positions.Positions`. The first
    is the first after the stream's start or, if the query is registered later, after the newest
    event. An answer's bounds are times: a window opens just before its oldest element, and closes
    with its newest. If the stream ends before the next m elements have come, no window closes with
    those there are. ISTREAM and DSTREAM answer only if something has come or gone.

    A late element has no position. Answers of windows that should have held it are approximate.
    """

    def __init__(
        self,
        bound: BoundCounted,
        *,
        joined: Joined | None = None,
        maintainers: Sequence[Maintainer[SolutionStore]] = (),
        clock: Clock = time.monotonic,
        open_whole: OpenWhole = SparqlEvaluation,
        rankers: RankerRegistry = RANKERS,
        lanes: Lanes | None = None,
    ) -> None:
        self.slide_ms = math.inf
        self.names: Sequence[str] = [bound.name]
        self._bound = replace(bound.query, name=bound.name)
        self._iri = bound.stream.iri
        self._clock = clock
        self._late_bound = bound.query.late_bound
        self._says_all = bound.plan.output == "RSTREAM"
        self._positions = Positions(bound.counted_elements, bound.stream.start_ms)
        open_whole = partial(open_whole, maintainers=maintainers, rankers=rankers, lanes=lanes)
        over_positions: Mapping[type, _Open] = {
            BoundQuery: partial(_best, joined, rankers, lanes),
            BoundWindowed: partial(_whole, open_whole),
        }
        inner = replace(bound, query=self._bound)
        self._work = over_positions[type(bound.query)](inner, clock, self._positions)
        self._counters = WindowCounters()

    # Queries come and go --------------------------------------------------------------------------

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Start with the first element after a time."""
        for time_ms in after_ms.values():
            self._positions.start_after(time_ms)
        self._work.join(self._bound, {})

    def resume_query(self, bound: Bound) -> bool:
        """Continue the query of the snapshot."""
        return self._work.resume_query(self._bound)

    def leave(self, name: str) -> None:
        """Do nothing: the evaluation is closed with its only query."""

    def close(self) -> None:
        """Close the inner evaluation."""
        self._work.close()

    # Elements in ----------------------------------------------------------------------------------

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return a window for each millisecond: an event is late once its millisecond is over."""
        return [answered_until(self._positions)]

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the time at which the first waiting element gets its position.

        None if none waits.
        """
        earliest = self._positions.earliest_ms
        return None if earliest is None else max(earliest, time_ms + 1)

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return the reducer that keeps all records."""
        return [RECORDS]

    def reducers_ahead(self, stream: str, watermark_ms: int) -> Sequence[Reducer]:
        """Return the same."""
        return self.reducers(stream)

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Buffer records until they get their positions."""
        for batch in parts[0].table.to_batches():
            self._counters.count(batch)
            self._counters.late += len(self._positions.add(batch))

    # Answers out ----------------------------------------------------------------------------------

    def advance(self, tick: Tick) -> Iterator[Answer | Unanswered]:
        """Yield the answers of windows that close with an element up to the watermark.

        The oldest answers come first.
        """
        return self._go_on(tick.watermark_ms, tick.due_at, tick.longest_wait)

    def finish(self, stream: str) -> Iterator[Answer | Unanswered]:
        """Yield the answers of the windows that close with an element that has come."""
        return self._go_on(None, self._clock(), math.inf)

    def _go_on(
        self, until_ms: int | None, due_at: float, longest_wait: float
    ) -> Iterator[Answer | Unanswered]:
        elements = self._positions.take_until(until_ms)
        if elements is None:
            return
        parts = list(reduced(elements, self._work.reducers(self._iri)))
        self._work.add(self._iri, parts, self.names)
        tick = Tick(self._iri, self._positions.count, due_at, longest_wait)
        for answer in self._work.advance(tick):
            opens_ms, closes_ms = self._times(answer)
            if isinstance(answer, Unanswered):
                yield replace(answer, opens_ms=opens_ms, closes_ms=closes_ms)
            elif self._says_all or answer.rows or answer.triples or answer.boolean:
                yield self._timed(answer, opens_ms, closes_ms)

    def _shown(self, window: Shown) -> Shown:
        opens_ms, closes_ms = self._times(window)
        return replace(window, opens_ms=opens_ms, closes_ms=closes_ms)

    def _times(self, window: Answer | Unanswered | Shown) -> tuple[int, int]:
        """Return the times in place of the positions at which a window opens and closes."""
        oldest, newest = max(1, window.opens_ms + 1), window.closes_ms
        return self._positions.time_of(oldest) - 1, self._positions.time_of(newest)

    def _timed(self, answer: Answer, opens_ms: int, closes_ms: int) -> Answer:
        """Return an answer with times in place of positions, and with the stream's counts."""
        newest, said = answer.closes_ms, answer.counts
        counts = self._counters.take(said.unscored, said.ambiguous, said.rejected)
        windows = tuple(map(self._shown, answer.windows))
        answer = answer.over_elements(opens_ms, closes_ms, counts, windows)
        if newest > self._positions.late_until:
            return answer
        return replace(
            answer,
            status=Status.APPROXIMATE,
            reason="something that belongs into a window came too late",
            bound=self._late_bound,
        )

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state."""
        parts = {
            "positions": self._positions.snapshot(),
            "work": self._work.snapshot(),
            "tally": self._counters.snapshot(),
        }
        return pack_parts(parts)

    def snapshot_committed(self) -> None:
        """Forward the call."""
        self._work.snapshot_committed()

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            self._positions.resume(parts["positions"])
            self._work.resume(parts["work"])
            self._counters.resume(parts["tally"])

    def sizes(self, name: str) -> Sizes:
        """Return the sizes of the evaluation over positions."""
        return self._work.sizes(name)


def _best(
    joined: Joined | None,
    rankers: RankerRegistry,
    lanes: Lanes | None,
    bound: BoundCounted,
    clock: Clock,
    positions: Positions,
) -> Evaluation:
    query: Any = bound.query
    strategy = None if bound.structure is None else bound.structure.strategy
    if strategy is not None and family_of(strategy) is Family.ELEMENTS:
        return PerElementEvaluation(
            query, clock=clock, instant=positions.time_of, strategy=strategy
        )
    return TopKEvaluation(
        query, joined, clock=clock, rankers=rankers, instant=positions.time_of, lanes=lanes
    )


def _whole(
    open_whole: OpenWhole, bound: BoundCounted, clock: Clock, positions: Positions
) -> Evaluation:
    query: Any = bound.query
    return open_whole(query, clock=clock, instant=positions.time_of)
