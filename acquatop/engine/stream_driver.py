"""Driver of one stream: takes batches from a runtime, commits them, and delivers answers."""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING

from acquatop.answer.answer import Answer
from acquatop.answer.unanswered import Unanswered
from acquatop.engine.commits import Committer
from acquatop.engine.delivery import Delivery
from acquatop.engine.journal_entry import JournalEntry
from acquatop.engine.observer import BatchSeen, Observer
from acquatop.engine.standstill import Standstill, StandstillWatch
from acquatop.engine.step import Outcome, SlotFailure, Step
from acquatop.engine.stream import StreamOperator
from acquatop.engine.stream_settings import StreamSettings
from acquatop.engine.stream_time import Phase
from acquatop.engine.waiting.stream_facts import StreamFacts
from acquatop.engine.waiting.view import StreamView
from acquatop.ingest.reduce.job import Job
from acquatop.runtime import Batch, Carrier, JobAhead

if TYPE_CHECKING:
    from collections.abc import Mapping

    from acquatop.engine.evaluation_slot import EvaluationSlot
    from acquatop.plan.bound import Bound


class StreamDriver:
    """Consumer of a stream's batches, as a runtime wants it.

    Each batch, each tick of the clock and the end is a step of the stream's state machine: its
    answers are committed, if state is kept, then delivered, and observers are told. Without state,
    answers are delivered one by one as they are made.
    """

    def __init__(
        self,
        stream: StreamOperator,
        committer: Committer,
        delivery: Delivery,
        observer: Observer,
        settings: StreamSettings,
    ) -> None:
        self.stream = stream
        self._committer = committer
        self._delivery = delivery
        self._observer = observer
        self._clock = settings.clock
        self._live = settings.live
        self._standstill = StandstillWatch(settings.clock)
        self._timer = settings.timer(stream.due_in, self._tick_or_end)
        self._carrier: Carrier | None = None
        self._facts = StreamFacts(settings.wall_clock())
        self._wall_clock = settings.wall_clock
        self._is_cut_short = False
        self._has_end_begun = False
        self._lock = threading.Lock()

    # Queries come and go --------------------------------------------------------------------------

    def join(self, slot: EvaluationSlot, bound: Bound) -> bool:
        """Let a query see the stream from the next batch on; return False if it has ended."""
        has_joined = self.stream.join(slot, bound)
        self._timer.wake()
        return has_joined

    # The runtime calls these ----------------------------------------------------------------------

    def wait(self) -> None:
        """Return once the next batch may be taken: other streams may have to catch up first."""
        if self.is_held():
            self.stream.gate.pass_through(self.stream.must_wait)
            self._go_on()

    def is_held(self) -> bool:
        """Return True if other streams have to catch up first; nothing can come meanwhile."""
        stream = self.stream
        if not stream.gate.is_open(stream.must_wait):
            stream.time.hold()
            return True
        if stream.time.phase is Phase.HELD:
            self._go_on()
        return False

    def _go_on(self) -> None:
        # What could not come while it was held is not missing.
        self.stream.time.listen()
        self._timer.wake()

    def release(self) -> None:
        """Stop waiting: no further batch is wanted."""
        self.stream.gate.release()

    def job(self) -> Job:
        """Return the job for the next batch."""
        is_new = self.stream.begin_batch()
        self._facts.begin(self._wall_clock())
        with self._committer.state_lock():
            self.stream.apply_joins_and_leaves()
            if is_new and self._committer.is_durable:
                self._committer.commit(self.stream.iri, {}, ())
            # Making it may move keys, of which another stream must not write a snapshot meanwhile.
            return self.stream.job()

    def job_ahead(self, batch: Batch) -> JobAhead | None:
        """Return the job for the records behind a batch that is to be taken next."""
        return self.stream.job_ahead(batch)

    def take(self, batch: Batch) -> None:
        """Give a batch to every query; commit it, and deliver the answers that are due."""
        due_at = self._clock()
        with self._committer.state_lock():
            if self.stream.time.has_ended:
                return
            self._committer.check()
            outcome, answers = self._run(self.stream.take(batch, due_at))
            seconds = self._committer.commit(self.stream.iri, outcome.entry, answers)
            if batch.log_nearly_full:
                # All is written twice then, so that the source may release this batch too: it may
                # have room for no other, and nothing would be written again.
                seconds += self._committer.commit(self.stream.iri, {}, answers)
            self._delivery.deliver(answers)
            self.stream.end_batch(batch)
            self._timer.wake()
        self._report(outcome, batch.seconds + self._clock() - due_at, seconds)

    def end(self, error: BaseException | None) -> None:
        """End the stream; close the remaining windows if a recording ended without an error.

        Safe to call again.
        """
        with self._lock:
            if self._has_end_begun:
                return
            self._has_end_begun = True
        self._timer.stop()
        closes = error is None and not self._live and not self._is_cut_short
        try:
            with self._committer.state_lock():
                self.stream.end()
                if closes:
                    self._committer.check()
                _, answers = self._run(self.stream.finish(closes=closes))
                if answers and self.stream.position is not None:
                    self._committer.commit(self.stream.iri, {}, answers)
                    self._delivery.deliver(answers)
        except BaseException as failure:
            error = failure
        slots = self.stream.detach()
        if error is not None:
            self._observer.failed(f"stream <{self.stream.iri}>", error)
        self._committer.commit_end(slots, error)
        self._delivery.end_stream(self.stream.iri, slots, error)

    # The engine calls these -----------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        """True if no further batch is taken."""
        return self.stream.time.has_ended

    @property
    def standstill(self) -> Standstill | None:
        """Standstill of the watermark while records come; None if it moves."""
        return self._standstill.present

    def view(self, now: float) -> StreamView:
        """Return the stream as it is at a time of day, to explain why nothing comes."""
        time, carrier = self.stream.time, self._carrier
        return StreamView(
            stream=self.stream.stream,
            now=now,
            facts=self._facts.now,
            status=None if carrier is None else carrier.status(),
            phase=time.phase,
            newest_ms=time.newest_ms,
            watermark_ms=time.watermark_ms,
            is_idle=time.is_idle,
            is_carried=carrier is not None,
            is_live=self._live,
            has_status=carrier is not None and carrier.tells_status,
            standstill=self._standstill.present,
        )

    def attach(self, carrier: Carrier) -> None:
        """Note the carrier of the batches, and begin to listen: an idle stream's time goes on."""
        self._carrier = carrier
        self.stream.time.attach()
        if self._live and self.stream.stream.idle_ms is not None:
            self._timer.start(f"acquatop-idle-{self.stream.iri}")

    def cut_short(self) -> None:
        """Note that the stream will be stopped before its end: its last windows stay open."""
        self._is_cut_short = True

    def stop(self) -> None:
        """Stop the stream after the batch at hand."""
        if self._carrier is not None:
            self._carrier.stop()

    def replay(self, entry: JournalEntry, slots: Mapping[str, EvaluationSlot]) -> None:
        """Process a journal's entry again."""
        _, answers = self._run(self.stream.replay(entry, slots))
        if answers:
            self._committer.save(answers)
            self._delivery.deliver(answers)

    def tick(self) -> None:
        """Let the clock advance an idle stream's time, and deliver the answers that are due."""
        due_at = self._clock()
        with self._committer.state_lock(), self.stream.time.advancing() as may_advance:
            if not may_advance:
                return
            self._committer.check()
            outcome, answers = self._run(self.stream.tick(due_at))
            seconds = 0.0
            if answers:
                seconds = self._committer.commit(self.stream.iri, {}, answers)
            self._delivery.deliver(answers)
        self._report(outcome, self._clock() - due_at, seconds)

    def _tick_or_end(self) -> None:
        try:
            self.tick()
        except BaseException as error:
            # No batch may come that could say it.
            self.stream.gate.fail(error)
            self.end(error)

    def _run(self, step: Step) -> tuple[Outcome, list[Answer]]:
        """Run a step; return its outcome, and the answers that are to be committed first."""
        answers: list[Answer] = []
        with closing(step):
            while True:
                try:
                    made = next(step)
                except StopIteration as done:
                    return done.value, answers
                if isinstance(made, SlotFailure):
                    self._delivery.fail(made.slot, made.error)
                elif isinstance(made, Unanswered):
                    self._delivery.miss(made)
                elif isinstance(made, BatchSeen):
                    self._observer.batch(made)
                elif self._committer.is_durable:
                    answers.append(made)
                else:
                    self._delivery.deliver([made])

    def _report(self, outcome: Outcome, seconds: float, commit_seconds: float) -> None:
        self._facts.end()
        if self.stream.time.phase is Phase.BATCH_UNDER_WAY:
            self._facts.begin(self._wall_clock())  # the next one
        seen = outcome.seen
        self._facts.note(seen, self._wall_clock())
        standstill = self._standstill.note(
            events=seen.events, bad=seen.bad, late=seen.late, watermark_ms=seen.watermark_ms
        )
        seen = replace(seen, seconds=seconds, commit_seconds=commit_seconds, standstill=standstill)
        self._observer.batch(seen)
        self.stream.notify_aligned_streams()
