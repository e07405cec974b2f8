"""State machine of one stream: its queries, its time, and the steps that move them."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from acquatop.catalog.catalog import Stream
from acquatop.engine.alignment import MAX_DRIFT, StreamAlignment
from acquatop.engine.batch_facts import batch_seen, has_times
from acquatop.engine.batch_segments import Segment, newest_of, segments_of, together
from acquatop.engine.closing_together import due_together, last_together
from acquatop.engine.evaluation_slot import EvaluationSlot, isolate_failures
from acquatop.engine.gate import Gate
from acquatop.engine.job_ahead import PreparedJob
from acquatop.engine.job_maker import JobMaker
from acquatop.engine.journal_entry import JournalEntry, pack_entry
from acquatop.engine.observer import BatchSeen
from acquatop.engine.reducer_slices import ReducerSlice, reducers_of
from acquatop.engine.side_outputs.of_stream import OldRecords, SideOutputs
from acquatop.engine.slot_step import due_answers, last_answers
from acquatop.engine.source_retention import SourceRetention
from acquatop.engine.step import Made, Outcome, SlotFailure, Step
from acquatop.engine.stream_settings import StreamSettings
from acquatop.engine.stream_slots import StreamSlots
from acquatop.engine.stream_time import StreamTime
from acquatop.ingest.reduce.contract import PartKind
from acquatop.ingest.reduce.job import Job
from acquatop.ingest.reduce.late_finder import BoolArray
from acquatop.plan.bound import Bound
from acquatop.runtime import Batch, Position
from acquatop.topk.contract import IntArray

_NO_TIMES: IntArray = np.empty(0, dtype=np.int64)
_NO_BATCH = Batch({}, ())


class Taken(NamedTuple):
    """Batch that was taken: the number of its answers and segments, and its facts."""

    answers: int
    segments: int
    seen: BatchSeen


class StreamOperator:
    """State machine of one stream: takes batches, ticks of the clock and the end; makes answers.

    It calls nobody above: a :class:`~acquatop.engine.step.Step` yields answers and failures, and
    the driver decides about them. Queries come and go between batches: each sees all of a batch or
    nothing. Between batches, the time of a live stream may advance by itself (:meth:`tick`), never
    during a batch. ``source`` are the streams of the query that makes this one, if a query does.
    """

    def __init__(
        self, stream: Stream, settings: StreamSettings, source: StreamAlignment | None = None
    ) -> None:
        self.stream = stream
        self.iri = stream.iri
        self.gate = Gate()
        idle_ms = stream.idle_ms if settings.live else None
        self.time = StreamTime(stream.lateness_ms, idle_ms, settings.clock)
        self.retention = SourceRetention()
        self.position: Position | None = None
        self._source = source
        self._live = settings.live
        self._durable = settings.durable
        self._clock = settings.clock
        self._wall_clock = settings.wall_clock
        self._side_outputs = SideOutputs(stream, settings.recording, durable=settings.durable)
        self.slots = StreamSlots(self)
        self._jobs = JobMaker(stream, settings, self._side_outputs, self.slots)
        self._slices: Sequence[ReducerSlice] = ()
        self._next_slices: Sequence[ReducerSlice] = ()
        """Slices of the batch that is under way behind the present one."""

    # Queries come and go --------------------------------------------------------------------------

    def join(self, slot: EvaluationSlot, bound: Bound) -> bool:
        """Let a query see the stream from the next batch on; return False if it has ended."""
        return self.slots.join(slot, bound)

    def attach_resumed(self, slot: EvaluationSlot) -> None:
        """Drive a slot with queries that have joined already."""
        self.slots.attach_resumed(slot)

    def leave(self, slot: EvaluationSlot, name: str) -> None:
        """Remove a query, from the next batch on."""
        self.slots.leave(slot, name)
        self.wake()

    def joined_after(self, name: str) -> int | None:
        """Return the time after which a query's first window opens, if it joined later."""
        return self.slots.joined_after.get(name)

    def apply_joins_and_leaves(self) -> None:
        """Let queries join and leave, between two batches."""
        self.slots.apply_joins_and_leaves(self.time.reached_ms)

    # Batches --------------------------------------------------------------------------------------

    def begin_batch(self) -> bool:
        """Advance the time up to now; from here on it stands still until the batch is taken.

        Return True if the state must be kept before the batch: that of new side outputs.
        """
        self.time.begin_batch()
        return self._side_outputs.begin()

    def job(self) -> Job:
        """Return the job for the next batch: the reducers that the present queries need."""
        reducers, self._slices = reducers_of(
            self.slots, lambda slot: slot.evaluation.reducers(self.iri)
        )
        for slot in self.slots:
            if len(slot.streams) > 1:
                # Another stream's thread may have seen this one idle, and be closing windows.
                slot.await_turn()
        job = self._jobs.job(reducers, self.watermark_ms, self.time.announced_watermark_ms)
        return replace(job, latest_ms=self._jobs.latest_ms())

    def job_ahead(self, batch: Batch) -> PreparedJob | None:
        """Return the job for the records behind a batch that is to be taken next.

        The watermark behind it is known, so the same records are late. Return None if queries are
        to come or go, if other streams decide about windows, or if a query needs what the batch
        brings.
        """
        reached_ms = self.time.watermark_after(newest_of(batch.partitions))
        if reached_ms is None or not self.slots.are_settled:
            return None
        ahead = {slot: slot.evaluation.reducers_ahead(self.iri, reached_ms) for slot in self.slots}
        known = {slot: reducers for slot, reducers in ahead.items() if reducers is not None}
        if len(known) < len(ahead):
            return None
        reducers, slices = reducers_of(self.slots, known.__getitem__)
        announced_ms = self.time.announced_watermark_ms
        announced_ms = reached_ms if announced_ms is None else max(reached_ms, announced_ms)
        return PreparedJob(
            self._jobs.job(reducers, reached_ms, announced_ms), slices, self._begin_prepared
        )

    def _begin_prepared(self, prepared: PreparedJob) -> Job | None:
        self._next_slices = prepared.slices
        if not self.time.begin_next():
            return None
        return replace(prepared.job, latest_ms=self._jobs.latest_ms())

    def take(self, batch: Batch, due_at: float) -> Step:
        """Give a batch to every query, segment by segment, and make the answers that are due."""
        before_ms = self.time.watermark_ms
        self._side_outputs.add(batch)
        taken = yield from self.absorb(batch, due_at)
        self.position = batch.position
        entry = {}
        needs_snapshot = taken.answers or self.slots.has_changed or batch.log_nearly_full
        if self._durable and not needs_snapshot and taken.segments == 1:
            state = self._side_outputs.state()
            entry = pack_entry(self.iri, _reduced(batch), self._slices, before_ms, state)
        return Outcome(taken.seen, entry)

    def absorb(
        self, batch: Batch, due_at: float, wait: float | None = None
    ) -> Generator[Made, None, Taken]:
        """Give a batch to every query, segment by segment, and make the answers that are due.

        Each slot may ``wait`` so long for remotes.
        """
        segments = segments_of(batch)
        late, answers, seconds = 0, 0, 0.0
        for segment in segments:
            late += yield from self._take_segment(segment)
            evaluated = self._clock()
            answers += yield from self.close_due_windows(due_at, wait)
            seconds += self._clock() - evaluated
        return Taken(answers, len(segments), self._seen(together(segments), late, seconds))

    def _take_segment(self, segment: Segment) -> Generator[SlotFailure, None, int]:
        """Give a segment of a batch to every query; return the number of late records."""
        old = OldRecords(segment.batch)
        late = self._dispatch(self._slices, _reduced(segment.batch), old.times())
        self.time.note(segment.newest_ms)
        yield from self._failures()
        self._side_outputs.add_late(old, late, self.time.announced_watermark_ms)
        return int(late.sum())

    def _seen(self, batch: Batch, late: int, seconds: float) -> BatchSeen:
        return batch_seen(
            self.iri, batch, late=late, watermark_ms=self.watermark_ms, seconds=seconds
        )

    def end_batch(self, batch: Batch) -> None:
        """Listen again, or go on with the next batch, once all that a batch has brought is done."""
        if self.time.end_batch(has_times=has_times(batch)):
            self._slices = self._next_slices

    def _dispatch(self, slices: Sequence[ReducerSlice], batch: Batch, old: IntArray) -> BoolArray:
        """Give a batch to its queries; return a mask of the old records that are late.

        A record is late if it is too late for a window of any query.
        """
        late = np.zeros(len(old), dtype=np.bool_)
        for each in slices:
            with isolate_failures(each.slot, durable=self._durable):
                for answered in each.slot.evaluation.windows(self.iri) if len(old) else ():
                    late |= answered.miss(old)
                # A batch that was reduced ahead has parts for slots that have failed meanwhile.
                for parts in each.parts(batch) if each.slot.error is None else ():
                    each.slot.evaluation.add(self.iri, parts, each.names)
        return late

    def close_due_windows(
        self, due_at: float, wait: float | None = None
    ) -> Generator[Made, None, int]:
        """Yield the answers that are due, and what has none; return their number.

        Each slot may ``wait`` so long for remotes.
        """
        wait = self._longest_wait() if wait is None else wait
        count = yield from due_together(self.slots, self, due_at, wait, durable=self._durable)
        for slot in self.slots:
            count += yield from due_answers(slot, self, due_at, wait, durable=self._durable)
        yield from self._failures()
        return count

    def _failures(self) -> Iterator[SlotFailure]:
        """Yield the slots with a new error; streams that share a slot report it once."""
        for slot in {each.slot: None for each in self._slices} | dict.fromkeys(self.slots):
            if (error := slot.claim_failure()) is not None:
                yield SlotFailure(slot, error)

    def _longest_wait(self) -> float:
        """Return the seconds that each slot may wait for its remotes at a window close.

        The slots of a stream take turns. On a live stream all of them together wait at most half of
        the shortest slide, so that none falls behind for good. On a recording the time is
        unlimited.
        """
        slots = list(self.slots.with_those_behind())
        if not self._live or not slots:
            return math.inf
        return min(slot.evaluation.slide_ms for slot in slots) / 2000 / len(slots)

    # The clock and the end ------------------------------------------------------------------------

    def tick(self, now: float) -> Step:
        """Advance an idle stream's time by the clock, and make the answers that are due."""
        self.apply_joins_and_leaves()
        self.time.tick(now)
        yield from self.close_due_windows(now)
        return Outcome(self._seen(_NO_BATCH, 0, self._clock() - now))

    def due_in(self) -> float | None:
        """Return the seconds until the next window may close by itself; None if unknown."""
        return self.time.due_in(self._due_ms(), at_once=self.slots.is_changing)

    def _due_ms(self) -> Iterator[int]:
        if (reached := self.watermark_ms) is not None:
            due = (slot.evaluation.due_after(self.iri, reached) for slot in self.slots)
            yield from (time_ms for time_ms in due if time_ms is not None)
        for behind in self.slots.answers_streams():
            yield from behind.operator._due_ms()

    def end(self) -> None:
        """Accept no query any more; those that have come before see the end."""
        self.slots.close()
        self.time.end()
        self.apply_joins_and_leaves()

    def finish(self, *, closes: bool) -> Step:
        """Make the answers of the windows left at the end, if it ``closes`` them."""
        if closes:
            yield from last_together(
                self.slots, self.iri, self._clock(), math.inf, durable=self._durable
            )
        for slot in self.slots:
            yield from last_answers(
                slot, self.iri, self._clock(), durable=self._durable, closes=closes
            )
        yield from self._failures()
        return Outcome(self._seen(_NO_BATCH, 0, 0.0))

    def detach(self) -> Sequence[EvaluationSlot]:
        """Hold up no other stream any more; return the slots that have lost a stream.

        So have those behind streams of answers that have ended with it.
        """
        self.gate.release()
        for slot in self.slots:
            slot.streams.detach(self)
        self.notify_aligned_streams()
        behind = [each.operator.detach() for each in self.slots.answers_streams() if each.has_ended]
        return [*self.slots, *(slot for slots in behind for slot in slots)]

    # State ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the stream's times, position and side outputs, as JSON."""
        return {**self.time.state(), "position": self.position, **self._side_outputs.state()}

    def snapshot_committed(self) -> None:
        """Note that a snapshot with the present state is durable."""
        self.slots.changed = False
        self.retention.snapshot_committed(self.position)

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resume from a state; the slots must resume from theirs."""
        self.time.resume(state)
        self.position = state["position"]
        self.retention.resume(self.position)
        self._side_outputs.resume(state)

    def replay(self, entry: JournalEntry, slots: Mapping[str, EvaluationSlot]) -> Step:
        """Process a journal's entry again; make answers that are due, though none were then."""
        # The first window is decided by what has come when time passes it, not by what comes later.
        before_ms = entry.watermark_ms
        if before_ms is not None and (self.watermark_ms is None or before_ms > self.watermark_ms):
            # Time has gone on by itself before this batch came.
            self.time.resume_watermark(before_ms)
            yield from self.close_due_windows(self._clock())
        self._dispatch(list(entry.slices(slots)), entry.batch, _NO_TIMES)
        for segment in segments_of(entry.batch):
            self.time.note(segment.newest_ms)
        yield from self._failures()
        self.position = entry.batch.position
        self._side_outputs.resume(entry.state)
        yield from self.close_due_windows(self._clock())
        return Outcome(self._seen(entry.batch, 0, 0.0))

    # Streams that are joined with this one --------------------------------------------------------

    @property
    def watermark_ms(self) -> int | None:
        """The stream's watermark."""
        return self.time.watermark_ms

    @property
    def has_ended(self) -> bool:
        """True if it has ended."""
        return self.time.has_ended

    @property
    def is_idle(self) -> bool:
        """True if the stream has brought nothing for so long that its time advances by itself."""
        return self.time.is_idle

    def announce(self, watermark_ms: int) -> None:
        """Note the watermark that queries were given for the stream."""
        self.time.announce(watermark_ms)

    def wake(self) -> None:
        """Check again whether the next batch may be taken; so do the streams that make this one."""
        self.gate.wake()
        if self._source is not None:
            self._source.wake()

    def must_wait(self) -> bool:
        """Return True if the stream is too far ahead of another that a query joins with it."""
        return any(self._must_wait_for(slot) for slot in self.slots) or any(
            each.operator.must_wait() for each in self.slots.answers_streams()
        )

    def _must_wait_for(self, slot: EvaluationSlot) -> bool:
        if len(slot.streams) < 2 or slot.error is not None or not slot.has_readers:
            return False
        widest = max(
            each.windows.width_ms for iri in slot.streams for each in slot.evaluation.windows(iri)
        )
        return slot.streams.must_wait(self, MAX_DRIFT * widest + self.stream.lateness_ms)

    def notify_aligned_streams(self) -> None:
        """Let the streams that are joined with this one check again whether they must wait."""
        for slot in self.slots:
            slot.streams.wake(but=self)
        for behind in self.slots.answers_streams():
            behind.operator.notify_aligned_streams()


def _reduced(batch: Batch) -> Batch:
    """Return a batch with the parts of its queries alone, without those for side outputs."""
    kept = [[part for part in each if part.kind is PartKind.REDUCED] for each in batch.partitions]
    return replace(batch, partitions=kept)
