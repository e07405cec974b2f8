"""One stream, the queries on it, and the time that has passed on it."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from acquatop.answer import Answer
from acquatop.at_work import AtWork, Bound
from acquatop.catalog import Stream
from acquatop.errors import EnvironmentProblem
from acquatop.operators.reduce.contract import Part, Reducer
from acquatop.operators.reduce.job import Job
from acquatop.runtime import Batch, Carrier, Position
from acquatop.topk.snapshot import pack_parts, unpack_parts
from acquatop.watch.observer import BatchSeen, Observer
from replica.clocks import Clock


class Unit:
    """Queries that are evaluated together, by the threads of their streams in turn."""

    def __init__(self, key: str, work: AtWork) -> None:
        self.key = key
        self.work = work
        self.turn = threading.RLock()
        self.error: BaseException | None = None
        self.has_begun = False
        self._waits: dict[str, float] = {}

    def longest_wait(self, stream: str, seconds: float) -> float:
        """Note how long an evaluation may wait, as far as one stream is concerned; return the least of all streams'."""
        # While one stream's thread waits for remotes, the others' wait for their turn.
        self._waits[stream] = seconds
        return min(self._waits.values())

    def forget_wait(self, stream: str) -> None:
        """Note that a stream has ended."""
        self._waits.pop(stream, None)


class Outlet(Protocol):
    """What a pipeline tells of its work: the engine."""

    def turn(self) -> AbstractContextManager[object]:
        """Return what is held while a batch changes what the engine keeps; what it raises ends all that is kept."""

    def give(self, answers: Sequence[Answer]) -> None:
        """Give out answers."""

    def keep(self, stream: str, position: Position, entry: Mapping[str, bytes], answers: Sequence[Answer]) -> float:
        """Make a batch durable, if that is wanted; return the seconds it took."""

    @property
    def keeps(self) -> bool:
        """Whether that is wanted: answers are given out together then, when they are durable."""

    def wants(self, unit: Unit) -> bool:
        """Say whether anybody wants answers of a unit still."""

    def failed(self, unit: Unit, error: BaseException) -> None:
        """Take note that a unit cannot go on."""

    def stream_ended(self, stream: str, units: Sequence[Unit], error: BaseException | None) -> None:
        """Take note that a stream has ended, after its last answers."""


@dataclass
class _Sight:
    """What of a job's parts belongs to a unit."""

    unit: Unit
    start: int
    stop: int
    names: tuple[str, ...]


@dataclass
class _Joining:
    unit: Unit
    bound: Bound
    done: threading.Event = field(default_factory=threading.Event)


class Pipeline:
    """Takes a stream's batches, and lets the windows close that they bring to their end.

    Queries come and go between batches: each sees all of a batch or nothing.
    """

    def __init__(self, stream: Stream, outlet: Outlet, observer: Observer, *, clock: Clock, live: bool) -> None:
        self.stream = stream
        self.ended = False
        self.carrier: Carrier | None = None
        self._outlet = outlet
        self._observer = observer
        self._live = live
        self._clock = clock
        self._units: list[Unit] = []
        self._joining: list[_Joining] = []
        self._leaving: list[tuple[Unit, str]] = []
        self._layout: list[_Sight] = []
        self._newest_ms: int | None = None
        self._has_changed = False
        """Whether queries have come or gone since all was kept: a journal does not say so."""
        self._lock = threading.Lock()
        self.position: Position | None = None

    # Queries come and go --------------------------------------------------------------------------

    def join(self, unit: Unit, bound: Bound) -> bool:
        """Let a query see what comes from the next batch on; False when the stream has ended already."""
        with self._lock:
            if self.ended:
                return False
            self._joining.append(_Joining(unit, bound))
            return True

    def go_on(self, unit: Unit) -> None:
        """Drive a unit whose queries have joined already."""
        unit.has_begun = True
        if unit not in self._units:
            self._units.append(unit)

    def leave(self, unit: Unit, name: str) -> None:
        """Let a query see nothing from the next batch on."""
        with self._lock:
            self._joining = [each for each in self._joining if not (each.unit is unit and each.bound.name == name)]
            self._leaving.append((unit, name))

    def _settle_who_is_here(self) -> None:
        with self._lock:
            joining, self._joining = self._joining, []
            leaving, self._leaving = self._leaving, []
        self._has_changed = self._has_changed or bool(joining or leaving)
        after = {} if self._newest_ms is None else {self.stream.iri: self._newest_ms}
        for each in joining:
            with each.unit.turn:
                if each.bound.name not in each.unit.work.names or each.unit not in self._units:
                    each.unit.work.join(each.bound, after)
            self.go_on(each.unit)
        for unit, name in leaving:
            with unit.turn:
                unit.work.leave(name)
        self._units = [unit for unit in self._units if unit.error is None and self._outlet.wants(unit)]

    # Batches --------------------------------------------------------------------------------------

    def job(self) -> Job:
        """Return what the queries that are here now need of the next batch."""
        with self._outlet.turn():
            self._settle_who_is_here()
        reducers: list[Reducer] = []
        places: dict[int, int] = {}
        self._layout = []
        for unit in self._units:
            own = unit.work.reducers(self.stream.iri)
            if len(own) == 1 and id(own[0]) in places:
                at = places[id(own[0])]
                self._layout.append(_Sight(unit, at, at + 1, tuple(unit.work.names)))
                continue
            places |= {id(each): len(reducers) + at for at, each in enumerate(own)}
            self._layout.append(_Sight(unit, len(reducers), len(reducers) + len(own), tuple(unit.work.names)))
            reducers += own
        return Job(self.stream.mapping, reducers)

    def take(self, batch: Batch) -> None:
        """Hand a batch to every query, and give out the answers that are due then."""
        due_at = self._clock()
        with self._outlet.turn():
            if self.ended:
                return
            self._hand_in(self._layout, batch)
            self.position = batch.position
            evaluated = self._clock()
            answers = self._let_windows_close(self._watermark(), due_at)
            made = self._clock()
            entry = self._entry(batch) if self._outlet.keeps and not answers and not self._has_changed else {}
            kept = self._outlet.keep(self.stream.iri, batch.position, entry, answers)
            self._has_changed = False
            self._outlet.give(answers)
        events, bad = _facts(batch)
        self._observer.batch(
            BatchSeen(
                stream=self.stream.iri,
                events=events,
                bad=bad,
                watermark_ms=self._watermark(),
                seconds=batch.seconds + self._clock() - due_at,
                reduce_seconds=batch.seconds,
                evaluate_seconds=made - evaluated,
                commit_seconds=kept,
                done=batch.done,
                total=batch.total,
            )
        )

    def _hand_in(self, sights: Iterable[_Sight], batch: Batch) -> None:
        for sight in sights:
            with self._guarded(sight.unit):
                for partition in _of(batch, sight):
                    sight.unit.work.add(self.stream.iri, partition, sight.names)
        times = [each[0].facts.newest_ms for each in batch.partitions if each]
        self._newest_ms = max((time for time in [*times, self._newest_ms] if time is not None), default=None)

    def _guarded(self, unit: Unit) -> _Guarded:
        return _Guarded(unit, self._outlet)

    def _watermark(self) -> int | None:
        return None if self._newest_ms is None else self._newest_ms - self.stream.lateness_ms

    def _let_windows_close(self, watermark_ms: int | None, due_at: float) -> list[Answer]:
        """Return the answers that are due, unless they have been given out one by one."""
        answers: list[Answer] = []
        if watermark_ms is None:
            return answers
        wait = self._longest_wait()
        for unit in list(self._units):
            with self._guarded(unit):
                longest = unit.longest_wait(self.stream.iri, wait)
                self._collect(unit, unit.work.advance(self.stream.iri, watermark_ms, due_at, longest), answers)
        return answers

    def _collect(self, unit: Unit, due: Iterator[Answer], answers: list[Answer]) -> None:
        # Answers are made one by one, each with its requests to the remote: none for queries that were stopped.
        while self._outlet.wants(unit) and (answer := next(due, None)) is not None:
            if self._outlet.keeps:
                answers.append(answer)
            else:
                self._outlet.give([answer])

    def _longest_wait(self) -> float:
        """Return how many seconds each unit may wait for its remotes whenever a window of its closes.

        Units on a stream take turns. On a live one all of them together wait at most half of the
        shortest slide, so that none falls behind for good; a recording has all the time there is.
        """
        if not self._live or not self._units:
            return math.inf
        return min(unit.work.slide_ms for unit in self._units) / 2000 / len(self._units)

    def end(self, error: BaseException | None) -> None:
        """Close the windows that are left, if the stream has come to its end and not to grief."""
        try:
            with self._outlet.turn():
                self._settle_who_is_here()
                with self._lock:
                    self.ended = True
                self._keep_and_give(self._last_answers(finishes=error is None and not self._live))
        except BaseException as failure:
            error = failure
        self._outlet.stream_ended(self.stream.iri, list(self._units), error)

    def _last_answers(self, *, finishes: bool) -> list[Answer]:
        answers: list[Answer] = []
        for unit in self._units:
            with self._guarded(unit):
                unit.forget_wait(self.stream.iri)
                if finishes:
                    self._collect(unit, unit.work.finish(self.stream.iri), answers)
        return answers

    def _keep_and_give(self, answers: Sequence[Answer]) -> None:
        if answers and self.position is not None:
            self._outlet.keep(self.stream.iri, self.position, {}, answers)
            self._outlet.give(answers)

    # What is kept ---------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return how far the stream has come, as JSON."""
        return {"newest_ms": self._newest_ms, "position": self.position}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; the units must go on from theirs."""
        self._newest_ms, self.position = state["newest_ms"], state["position"]

    def _entry(self, batch: Batch) -> dict[str, bytes]:
        """Return what a batch has brought, for the journal."""
        said = {
            "stream": self.stream.iri,
            "position": batch.position,
            "units": [[sight.unit.key, sight.start, sight.stop, sight.names] for sight in self._layout],
            "partitions": len(batch.partitions),
        }
        parts = {f"partition {at}": _packed(partition) for at, partition in enumerate(batch.partitions)}
        return {"batch": json.dumps(said).encode(), **parts}

    def replay(self, entry: Mapping[str, bytes], units: Mapping[str, Unit]) -> list[Answer]:
        """Take in again what a journal's entry says; return answers that are due, though none were then."""
        said = json.loads(entry["batch"])
        partitions = [_unpacked(entry[f"partition {at}"]) for at in range(said["partitions"])]
        batch = Batch(said["position"], partitions)
        sights = [
            _Sight(units[key], start, stop, tuple(names)) for key, start, stop, names in said["units"] if key in units
        ]
        self._hand_in(sights, batch)
        self.position = said["position"]
        # Which window is the first is decided by what has come when time passes it, not by what comes later.
        return self._let_windows_close(self._watermark(), self._clock())


_NO_FAULT = (OSError, MemoryError, EnvironmentProblem)
"""What is nobody's fault, and may be mended: where all is kept, it ends all, to be gone on from there."""


class _Guarded:
    """A unit's turn. An error ends the unit's queries, and no others."""

    def __init__(self, unit: Unit, outlet: Outlet) -> None:
        self._unit = unit
        self._outlet = outlet

    def __enter__(self) -> None:
        self._unit.turn.acquire()

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> bool:
        self._unit.turn.release()
        if isinstance(error, Exception) and not (self._outlet.keeps and isinstance(error, _NO_FAULT)):
            self._unit.error = error
            self._outlet.failed(self._unit, error)
            return True
        return False


def _of(batch: Batch, sight: _Sight) -> list[Sequence[Part]]:
    return [partition[sight.start : sight.stop] for partition in batch.partitions if partition]


def _facts(batch: Batch) -> tuple[int, Mapping[str, int]]:
    bad: dict[str, int] = {}
    first = [partition[0].facts for partition in batch.partitions if partition]
    for facts in first:
        for reason, count in (facts.bad or {}).items():
            bad[reason] = bad.get(reason, 0) + count
    return sum(facts.events for facts in first), bad


def _packed(partition: Sequence[Part]) -> bytes:
    return pack_parts({str(at): part.to_bytes() for at, part in enumerate(partition)})


def _unpacked(data: bytes) -> list[Part]:
    parts = unpack_parts(data)
    return [Part.from_bytes(parts[str(at)]) for at in range(len(parts))]
