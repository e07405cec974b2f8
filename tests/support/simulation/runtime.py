"""Runtime without threads: the simulation hands over each batch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from random import Random

import pyarrow as pa

from acquatop.catalog.catalog import Stream
from acquatop.runtime import Batch, Consumer, Item, Position, Result, Resume
from tests.support.simulation.scenario import StreamSpec
from tests.support.simulation.schedule import Schedule


class Source:
    """Log of one stream: all that will ever come, and how far it has come by now."""

    def __init__(self, stream: StreamSpec) -> None:
        self.records = stream.records
        # Partitions come at once: only in one of them can be told what comes after what.
        self.is_orderly = stream.is_orderly
        self.forgotten = 0
        self.consumed = 0
        self.edges: list[int] = []
        """Ends of the batches that were read, of the last reading."""

    def available(self, now: float | None) -> int:
        """Return how many records have come; all without a time."""
        if now is None:
            return len(self.records)
        return sum(1 for record in self.records if record.at <= now)


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
        lines = [record.line for record in self._source.records[self._offset : until]]
        partitions = [list(job(part)) for part in self._parts(lines, random)]
        self._schedule.tell(f"batch {self._offset}..{until} in {len(partitions)}")
        self._source.consumed = self._offset = until
        self._source.edges.append(until)
        self._number += 1
        position = {"batch": self._number - 1, "offset": until}
        self._consumer.take(Batch(position, partitions))

    def _parts(self, lines: Sequence[bytes], random: Random) -> list[list[pa.RecordBatch]]:
        """Cut a batch into partitions, and each into pieces."""
        count = random.randrange(3) if self._source.is_orderly else 0
        cuts = sorted(random.choices(range(len(lines) + 1), k=count))
        edges = [0, *cuts, len(lines)]
        parts = []
        for first, last in pairwise(edges):
            middle = random.randint(first, last)
            pieces = [lines[first:middle], lines[middle:last]]
            parts.append(
                [
                    pa.record_batch([pa.array(each, pa.binary())], ["value"])
                    for each in pieces
                    if each
                ]
            )
        return parts


class SimulatedRuntime:
    """Runtime of one life of an engine."""

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
