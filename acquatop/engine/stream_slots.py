"""Slots of the queries on one stream: queries join and leave between its batches."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

from acquatop.engine.alignment import AlignedStream
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.plan.bound import Bound

if TYPE_CHECKING:
    from acquatop.engine.answers_streams.stream import AnswersStream


class StreamSlots:
    """Slots of a stream. Any thread may let queries join or leave; the stream's own applies it."""

    def __init__(self, stream: AlignedStream) -> None:
        self._stream = stream
        self._slots: list[EvaluationSlot] = []
        self._joining: list[tuple[EvaluationSlot, Bound]] = []
        self._leaving: list[tuple[EvaluationSlot, str]] = []
        self._lock = threading.Lock()
        self._is_closed = False
        self.joined_after: dict[str, int] = {}
        """Time of the stream at which a query joined, if it had one, by the query's name."""
        self.changed = False
        """True if queries have come or gone since the last snapshot: the journal lacks that."""

    def __iter__(self) -> Iterator[EvaluationSlot]:
        return iter(tuple(self._slots))

    def __len__(self) -> int:
        return len(self._slots)

    @property
    def is_changing(self) -> bool:
        """True if queries wait to join or leave, here or behind streams of answers."""
        return bool(self._joining or self._leaving) or any(
            each.slots.is_changing for each in self.answers_streams()
        )

    @property
    def has_changed(self) -> bool:
        """True if queries have come or gone since the last snapshot, here or behind."""
        return self.changed or any(each.slots.has_changed for each in self.answers_streams())

    @property
    def has_queries(self) -> bool:
        """True if queries read the stream, or are about to."""
        return bool(self._slots or self._joining)

    def answers_streams(self) -> Iterator[AnswersStream]:
        """Yield the streams that the queries make of their answers, for others."""
        for slot in self:
            yield from slot.answers_streams

    def with_those_behind(self) -> Iterator[EvaluationSlot]:
        """Yield the slots, and those behind streams of answers."""
        yield from self
        for each in self.answers_streams():
            yield from each.slots.with_those_behind()

    @property
    def are_settled(self) -> bool:
        """True if no query comes or goes, and each slot has this stream alone."""
        return not self.is_changing and all(
            len(slot.streams) < 2 and slot.error is None and slot.has_readers
            for slot in self._slots
        )

    def join(self, slot: EvaluationSlot, bound: Bound) -> bool:
        """Let a query join with the next batch; return False if the stream has ended."""
        with self._lock:
            if self._is_closed:
                return False
            self._joining.append((slot, bound))
            slot.streams.attach(self._stream)
        return True

    def attach_resumed(self, slot: EvaluationSlot) -> None:
        """Add a slot with queries that have joined already."""
        slot.has_begun = True
        slot.streams.join(self._stream)
        if slot not in self._slots:
            self._slots.append(slot)

    def leave(self, slot: EvaluationSlot, name: str) -> None:
        """Let a query leave with the next batch, or at once if it has not joined yet."""
        with self._lock:
            joining = [
                (each, bound)
                for each, bound in self._joining
                if not (each is slot and bound.name == name)
            ]
            has_joined = len(joining) == len(self._joining) and self._stream.iri in slot.streams
            self._joining = joining
            if has_joined:
                self._leaving.append((slot, name))

    def close(self) -> None:
        """Accept no query any more."""
        with self._lock:
            self._is_closed = True

    def apply_joins_and_leaves(self, reached_ms: int | None) -> None:
        """Let queries join and leave now, after a time that the stream has reached."""
        with self._lock:
            joining, self._joining = self._joining, []
            leaving, self._leaving = self._leaving, []
        self.changed = self.changed or bool(joining or leaving)
        after = {} if reached_ms is None else {self._stream.iri: reached_ms}
        # Who has left may be back by now, under the same name.
        for slot, name in leaving:
            self.joined_after.pop(name, None)
            with slot.lock:
                slot.evaluation.leave(name)
        for slot, bound in joining:
            with slot.lock:
                if bound.name not in slot.evaluation.names or slot not in self._slots:
                    slot.evaluation.join(bound, after)
            if reached_ms is not None:
                self.joined_after[bound.name] = reached_ms
            self.attach_resumed(slot)
        self._slots = [slot for slot in self._slots if slot.error is None and slot.has_readers]
        for slot in self:
            with slot.lock:
                for each in slot.answers_streams:
                    each.operator.apply_joins_and_leaves()
