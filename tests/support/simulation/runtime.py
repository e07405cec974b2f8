"""Runtime without threads: the simulation hands over each batch."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa

from acquatop.catalog.catalog import Stream
from acquatop.ingest.reduce.contract import Part
from acquatop.runtime import Batch, Consumer, Item, Position, Result, Resume
from acquatop.runtime.publications import Publications, SentValues
from tests.support.simulation.scenario import QuerySpec, StreamSpec
from tests.support.simulation.schedule import Schedule


class Source:
    """Log of one stream: all that will ever come, and how far it has come by now."""

    def __init__(self, stream: StreamSpec, queries: Sequence[QuerySpec] = ()) -> None:
        self.stream = stream
        self.queries = [query for query in queries if stream.name in query.streams]
        self.records = stream.records
        self.in_parts = False
        self.late_in_parts = False
        """True if a batch with late records had several partitions."""
        self.was_ahead = self.was_again = False
        """True if a batch was read before the last one was taken, and if it was read again."""
        self.forgotten = 0
        self.consumed = 0
        self.edges: list[int] = []
        """Ends of the batches that were read, of the last reading."""

    def missed(self, t: int, newest: int | None) -> list[int]:
        """Return the number of windows that a record is too late for, of each query."""
        if newest is None:
            return []
        watermark = newest - self.stream.lateness_ms - 1
        return [
            int(t <= watermark)
            if query.counts
            else sum(
                1
                for closes in range(_first_close(query, t), t + query.width, query.slide)
                if closes <= watermark
            )
            for query in self.queries
        ]

    def available(self, now: float | None) -> int:
        """Return how many records have come; all without a time."""
        if now is None:
            return len(self.records)
        return sum(1 for record in self.records if record.at <= now)


def _first_close(query: QuerySpec, t: int) -> int:
    """Return the close of the first window of a query that holds a time."""
    return t + (query.width - t) % query.slide


Work = Callable[[Iterable[pa.RecordBatch]], Iterator[Part]]


class _Plan(NamedTuple):
    """Batch that is to be read: its number, its bounds, its partitions, and chance."""

    number: int
    start: int
    until: int
    parts: Sequence[Sequence[pa.RecordBatch]]
    random: Random


class _Read(NamedTuple):
    """Batch that was read, and the values that it was read ahead with, if it was."""

    plan: _Plan
    batch: Batch
    values: SentValues | None


def _no_broadcast(value: Any) -> Any:
    raise AssertionError("a simulation sends little")


class SimulatedCarrier:
    """One stream of one life; :meth:`poll` hands over a batch.

    Some batches are read before the one before them is taken, by a job that went to an executor.
    """

    def __init__(
        self,
        source: Source,
        consumer: Consumer,
        schedule: Schedule,
        random_at: Callable[[int], Random],
        *,
        until_end: bool,
        position: Position | None,
        durable: bool,
    ) -> None:
        self._source = source
        self._consumer = consumer
        self._schedule = schedule
        self._random_at = random_at
        self._until_end = until_end
        self._durable = durable
        self._offset = 0 if position is None else int(position["offset"])
        self._number = 0 if position is None else int(position["batch"]) + 1
        self._is_stopped = False
        self._publications = Publications(_no_broadcast)
        self.has_ended = False
        source.consumed = self._offset
        source.edges = [edge for edge in source.edges if edge <= self._offset]

    def start(self) -> None:
        """Do nothing: the simulation polls."""

    def forget(self, position: Position) -> None:
        """Discard data."""
        self._source.forgotten = max(self._source.forgotten, int(position["offset"]))

    tells_status = False

    def status(self) -> None:
        """Return None: there is no source."""

    def stop(self) -> None:
        """End the stream, as a thread does that is told to stop."""
        self._is_stopped = True
        self._consumer.release()
        self._end(None)

    def _end(self, error: BaseException | None) -> None:
        if not self.has_ended:
            self.has_ended = True
            self._consumer.end(error)

    @property
    def has_all(self) -> bool:
        """True if there is nothing to hand over, now or later."""
        return self.has_ended or self._offset == len(self._source.records)

    def poll(self) -> None:
        """Hand over the next batch, if there is one and the stream need not wait."""
        if self.has_ended:
            return
        try:
            self._poll()
        except Exception as error:
            self._end(error)

    def _poll(self) -> None:
        came = self._source.available(None if self._until_end else self._schedule.now)
        if came <= self._offset:
            if self._until_end:
                self._end(None)
            return
        if self._consumer.is_held():
            self._schedule.tell("held")
            return
        plan = self._planned(self._offset, self._number, came)
        read: _Read | None = self._read(plan, self._consumer.job())
        while read is not None:
            ahead = self._read_ahead(read, came)
            self._take(read)
            read = self._confirmed(ahead)

    def _planned(self, offset: int, number: int, came: int) -> _Plan:
        assert offset >= self._source.forgotten, "data is read that was given up"
        random = self._random_at(offset)
        until = min(came, offset + random.choice([1, 2, 3, 5, 8, 50]))
        parts = self._parts(offset, until, random)
        return _Plan(number, offset, until, parts, random)

    def _read(self, plan: _Plan, job: Work, values: SentValues | None = None) -> _Read:
        partitions = [list(job(part)) for part in plan.parts]
        position = {"batch": plan.number, "offset": plan.until}
        return _Read(plan, Batch(position, partitions), values)

    def _read_ahead(self, read: _Read, came: int) -> _Read | None:
        """Read the batch behind one that is still to be taken, now and then, if that may be."""
        plan = read.plan
        if plan.until == came or plan.random.random() < 0.5:
            return None
        prepared = self._consumer.job_ahead(read.batch)
        if prepared is None or self._consumer.is_held():
            return None
        values = self._publications.values_in(prepared.job)
        job = prepared.begin()
        assert job is not None, "the batch is still to be taken"
        following = self._planned(plan.until, plan.number + 1, came)
        with self._publications.sent(job, values) as sent:
            work: Work = pickle.loads(pickle.dumps(sent)).unpacked()
            return self._read(following, work, values)

    def _take(self, read: _Read) -> None:
        plan = read.plan
        how = "" if read.values is None else " ahead"
        self._schedule.tell(f"batch {plan.start}..{plan.until} in {len(plan.parts)}{how}")
        self._source.was_ahead |= read.values is not None
        self._source.consumed = self._offset = plan.until
        self._source.edges.append(plan.until)
        self._number = plan.number + 1
        self._consumer.take(read.batch)

    def _confirmed(self, ahead: _Read | None) -> _Read | None:
        """Return what was read ahead, or is read again as values have changed meanwhile."""
        if ahead is None or self.has_ended:
            return None
        assert ahead.values is not None
        if ahead.values.are_current:
            return ahead
        self._source.was_again = True
        return self._read(ahead.plan, self._consumer.job())

    def _parts(self, first: int, last: int, random: Random) -> list[list[pa.RecordBatch]]:
        """Cut a batch into partitions, and each into pieces."""
        edges = self._edges(first, last, random)
        parts = []
        for start, end in pairwise(edges):
            middle = random.randint(start, end)
            pieces = [self._lines(start, middle), self._lines(middle, end)]
            parts.append(
                [
                    pa.record_batch([pa.array(each, pa.binary())], ["value"])
                    for each in pieces
                    if each
                ]
            )
        return parts

    def _edges(self, first: int, last: int, random: Random) -> list[int]:
        """Return the edges of partitions; one if their order would decide what is late.

        Partitions come at once: a record may be late by those before the batch, and by those
        before it in its partition, and the other partitions must not matter.
        """
        cuts = sorted(random.choices(range(first, last + 1), k=random.randrange(3)))
        edges = [first, *cuts, last]
        missed = self._source.missed
        parts = [self._times(start, end) for start, end in pairwise(edges)]
        before = self._times(0, first)
        late = 0
        for number, part in enumerate(parts):
            others = [t for other, each in enumerate(parts) if other != number for t in each]
            for at, t in enumerate(part):
                known = [*before, *part[:at]]
                its = missed(t, max(known, default=None))
                late += any(its)
                if sum(its) != sum(missed(t, max([*known, *others], default=None))):
                    return [first, last]
        filled = sum(1 for part in parts if part)
        self._source.in_parts |= filled > 1
        self._source.late_in_parts |= late > 0 and filled > 1
        return edges

    def _times(self, first: int, last: int) -> list[int]:
        return [each.t for each in self._source.records[first:last] if each.t is not None]

    def _lines(self, first: int, last: int) -> list[bytes]:
        return [each.line for each in self._source.records[first:last]]


class SimulatedRuntime:
    """Runtime of one life of an engine."""

    has_executors = False

    def __init__(
        self,
        sources: dict[str, Source],
        schedule: Schedule,
        random_at: Callable[[str, int], Random],
    ) -> None:
        self.carriers: dict[str, list[SimulatedCarrier]] = {}
        self._sources = sources
        self._schedule = schedule
        self._random_at = random_at

    def carry(
        self, stream: Stream, consumer: Consumer, *, until_end: bool, resume: Resume | None
    ) -> SimulatedCarrier:
        """Return a carrier of a stream."""
        iri = stream.iri
        carrier = SimulatedCarrier(
            self._sources[iri],
            consumer,
            self._schedule,
            lambda offset: self._random_at(iri, offset),
            until_end=until_end,
            position=None if resume is None else resume.position,
            durable=resume is not None,
        )
        self.carriers.setdefault(iri, []).append(carrier)
        return carrier

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Sequence[Result]:
        """Apply a function to the items."""
        return [function(item) for item in items]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""
