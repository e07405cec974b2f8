"""Pipeline of one stream: its queries, its batches, and its watermark."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Stream
from acquatop.engine.alignment import ROOM, StreamAlignment
from acquatop.engine.idle_timer import IdleTimer
from acquatop.engine.observer import BatchSeen, Observer
from acquatop.engine.side_outputs.dead_letters import DeadLetters
from acquatop.engine.side_outputs.growing_file import SideOutputFile
from acquatop.engine.side_outputs.late_records import LateRecords
from acquatop.engine.watermark import Watermark
from acquatop.errors import EnvironmentProblem
from acquatop.ingest.place import Place
from acquatop.ingest.reduce.contract import Part, PartKind, Reducer
from acquatop.ingest.reduce.job import Job
from acquatop.ingest.reduce.late_finder import RECORD, BoolArray, LateFinder, are_late
from acquatop.plan.bind import Bound
from acquatop.query.contract import Evaluation, Tick
from acquatop.runtime import Batch, Carrier, Position
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import pack_parts, unpack_parts
from acquatop.windows import Windows
from connectors.mapping import TIME
from replica.clocks import Clock

if TYPE_CHECKING:
    from acquatop.engine.recorder import Recorder


class EvaluationSlot:
    """Queries that are evaluated together; the threads of their streams take turns."""

    def __init__(self, key: str, work: Evaluation) -> None:
        self.key = key
        self.work = work
        self.turn = threading.RLock()
        self.error: BaseException | None = None
        self.has_begun = False
        self.joined = StreamAlignment()
        self._waits: dict[str, float] = {}

    def longest_wait(self, stream: str, seconds: float) -> float:
        """Note how long an evaluation may wait for one stream; return the least of all streams'."""
        # While one stream's thread waits for remotes, the others' wait for their turn.
        self._waits[stream] = seconds
        return min(self._waits.values())

    def forget_wait(self, stream: str) -> None:
        """Note that a stream has ended."""
        self._waits.pop(stream, None)


class Outlet(Protocol):
    """Interface from a pipeline to the engine."""

    def turn(self) -> AbstractContextManager[object]:
        """Return the context to hold while a batch changes state that is kept.

        An error in it ends all keeping.
        """

    def give(self, answers: Sequence[Answer]) -> None:
        """Give out answers."""

    def keep(
        self, stream: str, position: Position, entry: Mapping[str, bytes], answers: Sequence[Answer]
    ) -> float:
        """Make a batch durable if state is kept; return the seconds it took."""

    @property
    def keeps(self) -> bool:
        """True if state is kept: answers are then given out together, once they are durable."""

    def wants(self, unit: EvaluationSlot) -> bool:
        """Return True if any running query needs the answers of a unit."""

    def failed(self, unit: EvaluationSlot, error: BaseException) -> None:
        """Note that a unit has failed."""

    def stream_ended(
        self, stream: str, units: Sequence[EvaluationSlot], error: BaseException | None
    ) -> None:
        """Note that a stream has ended, after its last answers."""


@dataclass
class _Sight:
    """Range of a job's parts that belongs to a unit."""

    unit: EvaluationSlot
    start: int
    stop: int
    names: tuple[str, ...]


@dataclass
class _Joining:
    unit: EvaluationSlot
    bound: Bound
    done: threading.Event = field(default_factory=threading.Event)


class Pipeline:
    """Pipeline that processes a stream's batches, and closes the windows that end with them.

    Queries come and go between batches: each sees all of a batch or nothing. Between batches, the
    time of a live stream may advance by itself (:meth:`tick`, in a thread of its own), never during
    a batch.
    """

    def __init__(
        self,
        stream: Stream,
        outlet: Outlet,
        observer: Observer,
        *,
        clock: Clock,
        live: bool,
        wall_clock: Clock = time.time,
        recording: Recorder | None = None,
    ) -> None:
        self.stream = stream
        self.iri = stream.iri
        self.ended = self._has_ended = False
        self.is_stopped = False
        """True if the stream was stopped before its end: then its last windows stay open."""
        self._carrier: Carrier | None = None
        self._outlet = outlet
        self._observer = observer
        self._live = live
        self._clock = clock
        self._wall_clock = wall_clock
        self._time = Watermark(stream.lateness_ms, stream.idle_ms if live else None, clock())
        self._told_ms: int | None = None
        self._late = None if stream.late_path is None else LateRecords(stream.late_path, stream.iri)
        self._bad = _dead_letters(stream)
        self._recording = recording
        self._timer = IdleTimer(self.due_in, self._go_on_by_itself)
        self._error: BaseException | None = None
        # Time goes on by itself only while somebody listens, and nothing that has come is on its way.
        self._listens = self._is_under_way = self._is_held = self._has_ticked = False
        self._moving = threading.Lock()
        self._is_released = False
        self._may_have_changed = threading.Condition()
        self._units: list[EvaluationSlot] = []
        self._joining: list[_Joining] = []
        self._leaving: list[tuple[EvaluationSlot, str]] = []
        self._layout: list[_Sight] = []
        self._has_changed = False
        """True if queries have come or gone since the last snapshot: the journal lacks that."""
        self._lock = threading.Lock()
        self.position: Position | None = None
        self._saved: Position | None = None

    # Queries come and go --------------------------------------------------------------------------

    def join(self, unit: EvaluationSlot, bound: Bound) -> bool:
        """Let a query see the stream from the next batch on; return False if it has ended."""
        with self._lock:
            if self.ended:
                return False
            self._joining.append(_Joining(unit, bound))
            unit.joined.attach(self)
        self._timer.wake()
        return True

    def go_on(self, unit: EvaluationSlot) -> None:
        """Drive a unit with queries that have joined already."""
        unit.has_begun = True
        unit.joined.attach(self)
        if unit not in self._units:
            self._units.append(unit)

    def leave(self, unit: EvaluationSlot, name: str) -> None:
        """Remove a query, from the next batch on."""
        with self._lock:
            self._joining = [
                each
                for each in self._joining
                if not (each.unit is unit and each.bound.name == name)
            ]
            self._leaving.append((unit, name))
        self.wake()

    def _settle_who_is_here(self) -> None:
        with self._lock:
            joining, self._joining = self._joining, []
            leaving, self._leaving = self._leaving, []
        self._has_changed = self._has_changed or bool(joining or leaving)
        times = [
            time for time in (self._time.newest_ms, self._time.watermark_ms) if time is not None
        ]
        after = {self.stream.iri: max(times)} if times else {}
        # Who has left may be back by now, under the same name.
        for unit, name in leaving:
            with unit.turn:
                unit.work.leave(name)
        for each in joining:
            with each.unit.turn:
                if each.bound.name not in each.unit.work.names or each.unit not in self._units:
                    each.unit.work.join(each.bound, after)
            self.go_on(each.unit)
        self._units = [
            unit for unit in self._units if unit.error is None and self._outlet.wants(unit)
        ]

    # Batches --------------------------------------------------------------------------------------

    def job(self) -> Job:
        """Return the job for the next batch: the reducers that the present queries need."""
        with self._moving:
            self._is_under_way = self._listens = True
            self._time.tick(self._clock())
        for aside in self._files().values():
            if aside is not None:
                aside.begin()
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
            self._layout.append(
                _Sight(unit, len(reducers), len(reducers) + len(own), tuple(unit.work.names))
            )
            reducers += own
        return Job(
            self.stream.mapping,
            reducers,
            self._latest_ms(),
            self._late_finder(),
            keeps_bad=self._bad is not None,
            keeps_records=self._recording is not None,
        )

    def take(self, batch: Batch) -> None:
        """Give a batch to every query, and give out the answers that are due."""
        due_at = self._clock()
        with self._outlet.turn():
            if self.ended:
                return
            before_ms = self._time.watermark_ms
            old = _tables(batch, PartKind.LATE)
            if self._recording is not None:
                self._recording.add(_tables(batch, PartKind.RECORDS), durable=self._outlet.keeps)
            if self._bad is not None:
                self._bad.add(_tables(batch, PartKind.BAD), durable=self._outlet.keeps)
            batch = _without_side_outputs(batch)
            late = self._keep_late(old, self._hand_in(self._layout, batch, _times_of(old)))
            self.position = batch.position
            evaluated = self._clock()
            answers = self._let_windows_close(due_at)
            made = self._clock()
            entry = {}
            if (
                self._outlet.keeps
                and not answers
                and not self._has_changed
                and not batch.is_pressing
            ):
                entry = self._entry(batch, before_ms)
            kept = self._outlet.keep(self.stream.iri, batch.position, entry, answers)
            if self._outlet.keeps and batch.is_pressing:
                # All is written twice then, so that the source may let go of this batch too: it may have room for no
                # other, and nothing would be written again.
                kept += self._outlet.keep(self.stream.iri, batch.position, {}, answers)
            self._has_changed = False
            self._outlet.give(answers)
            self._listen_on(batch)
        events, bad, bad_at = _facts(batch)
        self._observer.batch(
            BatchSeen(
                stream=self.stream.iri,
                events=events,
                bad=bad,
                bad_at=bad_at,
                late=late,
                watermark_ms=self.watermark_ms,
                seconds=batch.seconds + self._clock() - due_at,
                reduce_seconds=batch.seconds,
                evaluate_seconds=made - evaluated,
                commit_seconds=kept,
                done=batch.done,
                total=batch.total,
            )
        )
        self._tell_others()

    def _hand_in(self, sights: Iterable[_Sight], batch: Batch, old: IntArray) -> BoolArray:
        """Give a batch to its queries; return a mask of the old records that are late.

        A record is late if it is too late for a window of any query.
        """
        late = np.zeros(len(old), dtype=np.bool_)
        for sight in sights:
            with self._guarded(sight.unit):
                for windows, last in sight.unit.work.windows(self.stream.iri) if len(old) else ():
                    late |= last is not None and are_late(windows, last, old)
                for partition in _of(batch, sight):
                    sight.unit.work.add(self.stream.iri, partition, sight.names)
        for partition in batch.partitions:
            if partition:
                self._time.note(partition[0].facts.newest_ms)
        return late

    def _guarded(self, unit: EvaluationSlot) -> _Guarded:
        return _Guarded(unit, self._outlet)

    def _let_windows_close(self, due_at: float) -> list[Answer]:
        """Return the due answers, unless they have been given out one by one."""
        answers: list[Answer] = []
        wait = self._longest_wait()
        for unit in list(self._units):
            with self._guarded(unit):
                for stream, watermark_ms in unit.joined.steps(self):
                    longest = unit.longest_wait(self.stream.iri, wait)
                    stream.told(watermark_ms)
                    self._collect(
                        unit,
                        unit.work.advance(Tick(stream.iri, watermark_ms, due_at, longest)),
                        answers,
                    )
        return answers

    def _collect(self, unit: EvaluationSlot, due: Iterator[Answer], answers: list[Answer]) -> None:
        # Answers are made one by one, each with its requests to the remote: none for queries that were stopped.
        while self._outlet.wants(unit) and (answer := next(due, None)) is not None:
            if self._outlet.keeps:
                answers.append(answer)
            else:
                self._outlet.give([answer])

    def _longest_wait(self) -> float:
        """Return the seconds that each unit may wait for its remotes at a window close.

        The units of a stream take turns. On a live stream all of them together wait at most half of
        the shortest slide, so that none falls behind for good. On a recording the time is
        unlimited.
        """
        if not self._live or not self._units:
            return math.inf
        return min(unit.work.slide_ms for unit in self._units) / 2000 / len(self._units)

    def end(self, error: BaseException | None) -> None:
        """End the stream; close the remaining windows if a recording ended without an error.

        Safe to call again.
        """
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = True
        self._timer.stop()
        try:
            with self._outlet.turn():
                self._settle_who_is_here()
                with self._lock:
                    self.ended = True
                self._keep_and_give(
                    self._last_answers(
                        finishes=error is None and not self._live and not self.is_stopped
                    )
                )
        except BaseException as failure:
            error = failure
        self.ended = True
        self.release()
        units = list(self._units)
        for unit in units:
            unit.joined.detach(self)
        self._tell_others()
        self._outlet.stream_ended(self.stream.iri, units, error)

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
        """Return the stream's position, times and side outputs, as JSON."""
        return {
            **self._time.state(),
            "told_ms": self._told_ms,
            "position": self.position,
            **self._aside(),
        }

    def saved(self) -> None:
        """Note that a snapshot was written; let the source discard data before the previous one.

        Data after the previous one is needed if the new snapshot is damaged: then the engine
        resumes from the previous one.
        """
        if self._saved is not None and self._carrier is not None:
            self._carrier.forget(self._saved)
        self._saved = self.position

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resume from a state; the units must resume from theirs."""
        self._saved = state["position"]
        self._time.resume(state, self._clock())
        self._told_ms, self.position = state.get("told_ms"), state["position"]
        self._resume_aside(state)

    def _aside(self) -> dict[str, Any]:
        """Return the lengths of the side outputs' files."""
        return {
            name: None if file is None else file.state() for name, file in self._files().items()
        }

    def _files(self) -> dict[str, SideOutputFile | None]:
        recorded = None if self._recording is None else self._recording.stream
        return {"late": self._late, "bad": self._bad, "recorded": recorded}

    def _resume_aside(self, state: Mapping[str, Any]) -> None:
        for name, file in self._files().items():
            if file is not None:
                file.resume(state.get(name))

    def _entry(self, batch: Batch, before_ms: int | None) -> dict[str, bytes]:
        """Return the journal's entry for a batch, with the watermark before it."""
        said = {
            "stream": self.stream.iri,
            "position": batch.position,
            "units": [
                [sight.unit.key, sight.start, sight.stop, sight.names] for sight in self._layout
            ],
            "partitions": len(batch.partitions),
            "watermark_ms": before_ms,
            **self._aside(),
        }
        parts = {
            f"partition {at}": _packed(partition) for at, partition in enumerate(batch.partitions)
        }
        return {"batch": json.dumps(said).encode(), **parts}

    def replay(
        self, entry: Mapping[str, bytes], units: Mapping[str, EvaluationSlot]
    ) -> list[Answer]:
        """Process a journal's entry again; return answers that are due, though none were then."""
        said = json.loads(entry["batch"])
        partitions = [_unpacked(entry[f"partition {at}"]) for at in range(said["partitions"])]
        batch = Batch(said["position"], partitions)
        sights = [
            _Sight(units[key], start, stop, tuple(names))
            for key, start, stop, names in said["units"]
            if key in units
        ]
        # Which window is the first is decided by what has come when time passes it, not by what comes later.
        before_ms = said.get("watermark_ms")
        answers: list[Answer] = []
        if before_ms is not None and (self.watermark_ms is None or before_ms > self.watermark_ms):
            # It has gone on by itself before this batch came.
            self._time.resume(
                {"newest_ms": self._time.newest_ms, "watermark_ms": before_ms}, self._clock()
            )
            answers = self._let_windows_close(self._clock())
        self._hand_in(sights, batch, np.empty(0, dtype=np.int64))
        self.position = said["position"]
        self._resume_aside(said)
        return answers + self._let_windows_close(self._clock())

    # Time between batches -------------------------------------------------------------------------

    @property
    def carrier(self) -> Carrier | None:
        """The carrier of the stream's batches."""
        return self._carrier

    def attach(self, carrier: Carrier) -> None:
        """Note the carrier of the batches, and begin to listen: an idle stream's time goes on."""
        self._carrier = carrier
        self.listen()
        if self._live and self.stream.idle_ms is not None:
            self._timer.start(f"acquatop-idle-{self.stream.iri}")

    def listen(self) -> None:
        """Start to listen: from now on the stream is idle if it brings nothing."""
        with self._moving:
            self._listens, self._has_ticked = True, False
            self._time.listen(self._clock())

    @property
    def watermark_ms(self) -> int | None:
        """The stream's watermark."""
        return self._time.watermark_ms

    @property
    def is_idle(self) -> bool:
        """True if the stream has brought nothing for so long that its time advances by itself."""
        is_silent = self._listens and not self._is_under_way and not self._is_held
        return self.ended or (is_silent and self._time.is_idle(self._clock()))

    def told(self, watermark_ms: int) -> None:
        """Note the time that queries were given for the stream.

        It is later than the stream's own watermark if the stream is idle and others lead.
        """
        self._told_ms = watermark_ms if self._told_ms is None else max(watermark_ms, self._told_ms)

    def tick(self) -> None:
        """Advance an idle stream's time by the clock, and give out the answers that are due."""
        due_at = self._clock()
        with self._outlet.turn(), self._moving:
            if self.ended or not self.is_idle:
                return
            self._has_ticked = True
            self._settle_who_is_here()
            self._time.tick(due_at)
            answers = self._let_windows_close(due_at)
            made = self._clock()
            kept = (
                self._outlet.keep(self.stream.iri, self.position or {}, {}, answers)
                if answers
                else 0.0
            )
            self._has_changed = self._has_changed and not answers
            self._outlet.give(answers)
        self._observer.batch(
            BatchSeen(
                stream=self.stream.iri,
                events=0,
                watermark_ms=self.watermark_ms,
                seconds=self._clock() - due_at,
                evaluate_seconds=made - due_at,
                commit_seconds=kept,
            )
        )
        self._tell_others()

    def due_in(self) -> float | None:
        """Return the seconds until the next window may close by itself; None if unknown."""
        idle_at = self._time.idle_at()
        if (
            idle_at is None
            or self.ended
            or self._is_under_way
            or self._is_held
            or not self._listens
        ):
            return None
        now = self._clock()
        if not self.is_idle:
            return idle_at - now
        if not self._has_ticked or self._joining or self._leaving:
            return 0.0
        reached = self.watermark_ms
        if reached is None:
            return None
        due = {unit.work.due_after(self.stream.iri, reached) for unit in list(self._units)} - {None}
        at = [
            moment
            for time_ms in due
            if time_ms is not None and (moment := self._time.reaches_at(time_ms)) is not None
        ]
        return min(at) - now if at else None

    def _windows(self) -> list[Windows]:
        return list(
            {
                windows: None
                for unit in list(self._units)
                for windows, _ in unit.work.windows(self.stream.iri)
            }
        )

    def _go_on_by_itself(self) -> None:
        try:
            self.tick()
        except BaseException as error:
            # No batch may come that could say it.
            self._error = error
            self.end(error)

    def _listen_on(self, batch: Batch) -> None:
        """Note the end of a batch. Bad records do not end idleness, as they have no time."""
        with self._moving:
            self._is_under_way = False
        if any(
            partition and partition[0].facts.newest_ms is not None for partition in batch.partitions
        ):
            self.listen()
        self._timer.wake()

    # Streams that wait for others -----------------------------------------------------------------

    def wait(self) -> None:
        """Return once the next batch may be taken: other streams may have to catch up first."""
        if self._may_go_on():
            return
        with self._may_have_changed:
            self._is_held = True
            while not self._may_go_on():
                self._may_have_changed.wait()
        # What could not come while it was held is not missing.
        self.listen()
        self._is_held = False
        self._timer.wake()

    def release(self) -> None:
        """Stop waiting: no further batch is wanted."""
        self._is_released = True
        self.wake()

    def wake(self) -> None:
        """Check again whether the next batch may be taken."""
        with self._may_have_changed:
            self._may_have_changed.notify_all()

    def _may_go_on(self) -> bool:
        if self._error is not None:
            raise self._error
        return self._is_released or not any(self._must_wait(unit) for unit in list(self._units))

    def _must_wait(self, unit: EvaluationSlot) -> bool:
        if len(unit.joined) < 2 or unit.error is not None or not self._outlet.wants(unit):
            return False
        widest = max(
            windows.width_ms for iri in unit.joined for windows, _ in unit.work.windows(iri)
        )
        return unit.joined.must_wait(self, ROOM * widest + self.stream.lateness_ms)

    def _tell_others(self) -> None:
        for unit in self._units:
            unit.joined.wake(but=self)

    # What comes too late, or too early ------------------------------------------------------------

    def _latest_ms(self) -> int | None:
        """Return the latest valid time of a record, or None.

        A recording has no such limit, as its times are unrelated to the clock.
        """
        if not self._live or self.stream.ahead_ms is None:
            return None
        return round(1000 * self._wall_clock()) + self.stream.ahead_ms

    def _late_finder(self) -> LateFinder | None:
        """Return a finder of records in windows that may have closed.

        The windows that have closed are known when the batch is handed in. Until then no further
        window can close, because the stream is not idle; only those are closed that queries know to
        be over.
        """
        for unit in self._units:
            if len(unit.joined) > 1:
                with unit.turn:
                    pass  # whoever has seen the stream idle is done then
        if self._told_ms is None:
            return None
        closed = [(windows, windows.first(self._told_ms + 1) - 1) for windows in self._windows()]
        return LateFinder(closed, keeps=self._late is not None)

    def _keep_late(self, old: Sequence[pa.Table], is_late: BoolArray) -> int:
        """Write late records to the side output, and return their number."""
        if self._late is not None and is_late.any():
            table = pa.concat_tables(old).filter(pa.array(is_late))
            pairs = zip(
                table.column(TIME).to_pylist(), table.column(RECORD).to_pylist(), strict=True
            )
            self._late.add(pairs, self._told_ms, durable=self._outlet.keeps)
        return int(is_late.sum())


def _dead_letters(stream: Stream) -> DeadLetters | None:
    if stream.dead_letters_path is None:
        return None
    return DeadLetters(stream.dead_letters_path, stream.iri, stream.dead_letters_bytes)


_NO_FAULT = (OSError, MemoryError, EnvironmentProblem)
"""Errors of the environment: if state is kept, they end the run, which can be resumed later."""


class _Guarded:
    """Turn of a unit. An error ends the unit's queries only."""

    def __init__(self, unit: EvaluationSlot, outlet: Outlet) -> None:
        self._unit = unit
        self._outlet = outlet

    def __enter__(self) -> None:
        self._unit.turn.acquire()

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> bool:
        self._unit.turn.release()
        if isinstance(error, Exception) and not (
            self._outlet.keeps and isinstance(error, _NO_FAULT)
        ):
            self._unit.error = error
            self._outlet.failed(self._unit, error)
            return True
        return False


def _tables(batch: Batch, kind: PartKind) -> list[pa.Table]:
    return [part.table for partition in batch.partitions for part in partition if part.kind is kind]


def _without_side_outputs(batch: Batch) -> Batch:
    """Return a batch with the parts of its queries alone, which the journal keeps."""
    kept = [[part for part in each if part.kind is PartKind.REDUCED] for each in batch.partitions]
    return replace(batch, partitions=kept)


def _of(batch: Batch, sight: _Sight) -> list[Sequence[Part]]:
    return [partition[sight.start : sight.stop] for partition in batch.partitions if partition]


def _times_of(tables: Sequence[pa.Table]) -> IntArray:
    times = [np.asarray(table.column(TIME).to_numpy()) for table in tables]
    return np.concatenate([np.empty(0, dtype=np.int64), *times])


def _facts(batch: Batch) -> tuple[int, Mapping[str, int], Mapping[str, Place]]:
    """Return the number of items, the bad ones by reason, and the place of each reason's first."""
    bad: dict[str, int] = {}
    bad_at: dict[str, Place] = {}
    first = [partition[0].facts for partition in batch.partitions if partition]
    for facts in first:
        for reason, count in (facts.bad or {}).items():
            bad[reason] = bad.get(reason, 0) + count
        bad_at = {**(facts.bad_at or {}), **bad_at}
    return sum(facts.events for facts in first), bad, bad_at


def _packed(partition: Sequence[Part]) -> bytes:
    return pack_parts({str(at): part.to_bytes() for at, part in enumerate(partition)})


def _unpacked(data: bytes) -> list[Part]:
    parts = unpack_parts(data)
    return [Part.from_bytes(parts[str(at)]) for at in range(len(parts))]
