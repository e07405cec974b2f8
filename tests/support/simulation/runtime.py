"""Runtime without threads: the simulation hands over each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

import pyarrow as pa

from acquatop.catalog.catalog import Stream
from acquatop.runtime import Batch, Consumer, Item, Position, Result, Resume
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


class SimulatedCarrier:
    """One stream of one life; :meth:`poll` hands over a batch."""

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
        assert self._offset >= self._source.forgotten, "data is read that was given up"
        random = self._random_at(self._offset)
        until = min(came, self._offset + random.choice([1, 2, 3, 5, 8, 50]))
        job = self._consumer.job()
        parts = self._parts(self._offset, until, random)
        partitions = [list(job(part)) for part in parts]
        self._schedule.tell(f"batch {self._offset}..{until} in {len(partitions)}")
        self._source.consumed = self._offset = until
        self._source.edges.append(until)
        self._number += 1
        position = {"batch": self._number - 1, "offset": until}
        self._consumer.take(Batch(position, partitions))

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
