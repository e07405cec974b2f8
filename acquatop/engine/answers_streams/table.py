"""Table of the streams that queries make of their answers for other queries."""

from __future__ import annotations

from collections.abc import Sequence

from acquatop.catalog.catalog import Stream
from acquatop.engine.answers_streams.stream import AnswersStream
from acquatop.engine.answers_streams.worth import Held, Inheritance, Worth
from acquatop.engine.commits import Committer
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.persistence import EngineState
from acquatop.engine.queries import QueryRegistry, RegistryEntry
from acquatop.engine.slots import SlotTable
from acquatop.engine.stream import StreamOperator
from acquatop.engine.stream_settings import StreamSettings
from acquatop.errors import UserError
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundWindowed


class AnswersStreams:
    """Streams of answers, each made when the first query reads it."""

    def __init__(
        self,
        queries: QueryRegistry,
        slots: SlotTable,
        committer: Committer,
        state: EngineState | None,
        settings: StreamSettings,
    ) -> None:
        self._queries = queries
        self._slots = slots
        self._committer = committer
        self._state = state
        self._settings = settings

    def attach(self, slot: EvaluationSlot, bound: Bound, *, resumed: bool) -> None:
        """Let a query read the answers of others, as its text says."""
        read: dict[str, Worth] = {}
        for stream in bound.streams:
            if stream.query is not None:
                read[stream.iri] = self._attach_one(stream, slot, bound, resumed=resumed)
        if read:
            slot.inherit(bound.name, _inheritance(bound, read))

    def _attach_one(
        self, stream: Stream, slot: EvaluationSlot, bound: Bound, *, resumed: bool
    ) -> Worth:
        source, of = self._source(stream)
        with of.lock:
            made = next((each for each in of.answers_streams if each.iri == stream.iri), None)
            if made is None:
                made = self._open(stream, source, of)
                of.answers_streams = (*of.answers_streams, made)
                self._committer.add(made)
            if resumed:
                made.operator.attach_resumed(slot)
            elif not made.operator.join(slot, bound):
                raise UserError(f"the query that makes <{stream.iri}> has ended")
            return made.worth

    def _source(self, stream: Stream) -> tuple[RegistryEntry, EvaluationSlot]:
        """Return the query that makes a stream, and its slot."""
        if not self._settings.reads_together:
            raise UserError(
                f"<{stream.iri}> may be over before another query reads it: the query that makes "
                "it reads a recording, and has begun\n"
                "  hint: Engine(..., autostart=False), register all queries, and start the engine"
            )
        entry = next(
            (each for each in self._queries.entries() if each.query.name == stream.query), None
        )
        slot = None if entry is None or entry.query.stopped else self._slots.of(entry.query)
        if entry is None or slot is None:
            raise UserError(f"the query that makes <{stream.iri}> has been stopped")
        return entry, slot

    def _open(self, stream: Stream, source: RegistryEntry, of: EvaluationSlot) -> AnswersStream:
        operator = StreamOperator(stream, self._settings, of.streams)
        made = AnswersStream(operator, source.bound)
        kept = None if self._state is None else self._state.stream(stream.iri)
        if kept is not None:
            made.resume(kept)
        # What was answered before nobody has kept: windows begin behind it.
        closes_ms = [
            each.windows.bounds(each.closed)[1]
            for iri in source.query.streams
            for each in of.evaluation.windows(iri)
            if each.closed is not None
        ]
        if closes_ms:
            operator.time.reach(max(closes_ms))
        last = of.last.get(source.query.name)
        if last is not None or (closes_ms and kept is None):
            made.worth.pass_by(last)
        return made

    def leave(self, slot: EvaluationSlot, name: str) -> None:
        """Remove a query from all streams of answers."""
        for each in self._slots:
            for made in each.answers_streams:
                made.operator.leave(slot, name)


def _inheritance(bound: Bound, read: dict[str, Worth]) -> Inheritance:
    counts = isinstance(bound, BoundCounted)
    query = bound.query if isinstance(bound, BoundCounted) else bound
    late_bound, backs_ms = query.late_bound, _backs_ms(query)
    if isinstance(query, BoundQuery) and not query.parts:
        held = Held(read[query.stream.iri], query.windows, counts)
        return Inheritance({None: held}, late_bound, backs_ms)
    windows = query.windows if isinstance(query, BoundWindowed) else query.parts
    several: dict[str | None, Held] = {
        each.name: Held(read[each.stream.iri], each.windows, counts)
        for each in windows
        if each.stream.iri in read
    }
    return Inheritance(several, late_bound, backs_ms)


def _backs_ms(query: BoundQuery | BoundWindowed) -> Sequence[int]:
    """Return the times back to the values of its windows that a query compares with."""
    if isinstance(query, BoundWindowed):
        past = query.plan.evaluated.before
    else:
        past = () if query.plan.at_close is None else query.plan.at_close.past
    return sorted({value.back_ms for each in past for value in each.past})
