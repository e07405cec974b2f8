"""Commits of an engine's state: a batch is durable before its answers are delivered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from acquatop.answer.answer import Answer
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.persistence import EngineState, KeptSlot
from acquatop.engine.slots import SlotTable
from replica.clocks import Clock


class KeptStream(Protocol):
    """Stream with a state to keep."""

    @property
    def iri(self) -> str:
        """The stream's IRI."""

    @property
    def has_ended(self) -> bool:
        """True if it has ended."""

    def state(self) -> dict[str, Any]:
        """Return its state, as JSON."""

    def snapshot_committed(self) -> None:
        """Note that a snapshot with the present state is durable."""


class Committer:
    """Commits of all streams to a state directory, or none without one."""

    def __init__(self, state: EngineState | None, slots: SlotTable, clock: Clock) -> None:
        self._state = state
        self._slots = slots
        self._clock = clock
        self._streams: list[KeptStream] = []
        self._ended: dict[str, KeptSlot] = {}

    @property
    def is_durable(self) -> bool:
        """True if state is kept: answers are then delivered together, once they are durable."""
        return self._state is not None

    def state_lock(self) -> AbstractContextManager[object]:
        """Return the context to hold while a step changes durable state.

        An error in it ends all writing.
        """
        return nullcontext() if self._state is None else self._state.lock()

    def check(self) -> None:
        """Raise an error if nothing could be committed now: after an error that has ended all
        writing, or if another engine has the state.
        """
        if self._state is not None:
            self._state.check_right()

    def add(self, stream: KeptStream) -> None:
        """Commit one more stream, and no longer those that have ended."""
        going = [each for each in self._streams if not each.has_ended]
        self._streams = [*going, stream]

    def commit(self, stream: str, entry: Mapping[str, bytes], answers: Sequence[Answer]) -> float:
        """Make a step durable, with an entry in the journal or with a snapshot.

        A journal entry is sufficient if no window has closed. Returns the seconds it took.
        """
        if self._state is None:
            return 0.0
        started = self._clock()
        if not entry or not self._state.append(stream, entry):
            self.save(answers)
        return self._clock() - started

    def save(self, answers: Sequence[Answer]) -> None:
        """Write a snapshot of all streams and slots, with the answers to be delivered next."""
        assert self._state is not None, "only state that is kept can be saved"
        streams = list(self._streams)
        # Queries may be removed by other threads meanwhile, and their slots with them.
        slots = [slot for slot in self._slots if slot.is_running]
        kept = {**self._ended, **_kept(slots)}
        self._state.save({stream.iri: stream.state() for stream in streams}, kept, answers)
        for slot in slots:
            slot.evaluation.snapshot_committed()
        for stream in streams:
            stream.snapshot_committed()

    def commit_end(self, slots: Sequence[EvaluationSlot], error: BaseException | None) -> None:
        """Keep the state of queries that end with a stream when the others' state is written."""
        if self._state is None:
            return
        if error is not None:
            # Other streams would continue without the queries. These could not resume from state
            # written then.
            self._state.freeze(error)
            return
        with self._state.lock():
            self._ended |= _kept(slots)

    def close(self) -> None:
        """Write the final state, and release it for another engine."""
        if self._state is None:
            return
        try:
            with self._state.lock():
                if self._state.is_behind and (len(self._slots) or self._ended):
                    self.save(())
        finally:
            self._state.close()
            self._streams.clear()


def _kept(slots: Sequence[EvaluationSlot]) -> dict[str, KeptSlot]:
    """Return the state of those slots that have begun and have not failed."""
    return {
        slot.key: KeptSlot(slot.evaluation.names, slot.evaluation.snapshot())
        for slot in slots
        if slot.is_running
    }
