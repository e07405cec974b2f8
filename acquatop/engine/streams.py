"""Streams of an engine: each is carried once for all queries that read it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acquatop.catalog.catalog import Stream
from acquatop.engine.answers_streams.table import AnswersStreams
from acquatop.engine.commits import Committer
from acquatop.engine.delivery import Delivery
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.journal_entry import JournalEntry
from acquatop.engine.lazy_runtime import LazyRuntime
from acquatop.engine.observer import Observer
from acquatop.engine.persistence import EngineState
from acquatop.engine.stream import StreamOperator
from acquatop.engine.stream_driver import StreamDriver
from acquatop.engine.stream_settings import StreamSettings
from acquatop.plan.bound import Bound
from acquatop.runtime import Resume


class StreamTable:
    """Drivers of the streams that are read."""

    def __init__(
        self,
        runtime: LazyRuntime,
        committer: Committer,
        delivery: Delivery,
        observer: Observer,
        state: EngineState | None,
        settings: StreamSettings,
        answers: AnswersStreams,
    ) -> None:
        self._answers = answers
        self._runtime = runtime
        self._committer = committer
        self._delivery = delivery
        self._observer = observer
        self._state = state
        self._settings = settings
        self._drivers: list[StreamDriver] = []

    def attach(self, slot: EvaluationSlot, bound: Bound, *, resumed: bool) -> list[StreamDriver]:
        """Let a query read its streams; return the drivers of new ones, to be carried."""
        self._answers.attach(slot, bound, resumed=resumed)
        new = []
        for stream in (each for each in bound.streams if each.query is None):
            running = self._running(stream)
            if running is not None and resumed:
                running.stream.attach_resumed(slot)
            elif running is None or not running.join(slot, bound):
                new.append(self._open(stream, slot, bound, resumed=resumed))
        return new

    def leave(self, slot: EvaluationSlot, name: str) -> None:
        """Remove a query from all streams."""
        for driver in list(self._drivers):
            driver.stream.leave(slot, name)
        self._answers.leave(slot, name)

    def _running(self, stream: Stream) -> StreamDriver | None:
        if not self._settings.reads_together:
            return None
        running = (each for each in self._drivers if not each.has_ended)
        return next((each for each in running if each.stream.iri == stream.iri), None)

    def _open(
        self, stream: Stream, slot: EvaluationSlot, bound: Bound, *, resumed: bool
    ) -> StreamDriver:
        operator = StreamOperator(stream, self._settings)
        driver = StreamDriver(
            operator, self._committer, self._delivery, self._observer, self._settings
        )
        kept = None if self._state is None else self._state.stream(stream.iri)
        if kept is not None:
            operator.resume(kept)
        if resumed:
            operator.attach_resumed(slot)
        else:
            operator.join(slot, bound)
        self._drivers = [each for each in self._drivers if not each.has_ended] + [driver]
        self._committer.add(operator)
        return driver

    def replay(
        self, stream: str, entry: Mapping[str, bytes], slots: Mapping[str, EvaluationSlot]
    ) -> None:
        """Process a journal's entry again, if its stream is still read."""
        for driver in self._drivers:
            if driver.stream.iri == stream:
                driver.replay(JournalEntry.unpack(entry), slots)

    def carry_all(self) -> None:
        """Carry all streams."""
        for driver in list(self._drivers):
            self.carry(driver)

    def carry(self, driver: StreamDriver) -> None:
        """Carry a stream: its first batch may come from now on."""
        operator = driver.stream
        resume = None
        if self._state is not None:
            folder = self._state.folder(operator.iri)
            resume = Resume(folder, operator.position, moves=self._state.is_remote)
        carrier = self._runtime.carry(
            operator.stream, driver, until_end=not self._settings.live, resume=resume
        )
        # A first batch may fill the source's log before anything else is done here.
        operator.retention.attach(carrier)
        carrier.start()
        driver.attach(carrier)

    def drivers(self) -> Sequence[StreamDriver]:
        """Return the drivers of all streams."""
        return list(self._drivers)

    def stop(self) -> None:
        """Stop all streams after the batches at hand."""
        for driver in self._drivers:
            driver.cut_short()
        for driver in self._drivers:
            driver.stop()

    def clear(self) -> None:
        """Forget all streams."""
        self._drivers.clear()
