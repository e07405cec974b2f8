"""Slices of a job's parts: each slot gets those of its own reducers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.runtime import Batch


@dataclass(frozen=True)
class ReducerSlice:
    """Range of a job's parts for a slot, and the slot's queries when the job was made."""

    slot: EvaluationSlot
    start: int
    stop: int
    names: tuple[str, ...]

    def parts(self, batch: Batch) -> Iterator[Sequence[Part]]:
        """Yield the slot's parts of each partition."""
        for partition in batch.partitions:
            if partition:
                yield partition[self.start : self.stop]


def reducers_of(
    slots: Iterable[EvaluationSlot], reducers_of_slot: Callable[[EvaluationSlot], Sequence[Reducer]]
) -> tuple[list[Reducer], list[ReducerSlice]]:
    """Return the reducers of a stream's next job, shared ones once, and their slices."""
    reducers: list[Reducer] = []
    places: dict[int, int] = {}
    slices: list[ReducerSlice] = []
    for slot in slots:
        own = reducers_of_slot(slot)
        names = tuple(slot.evaluation.names)
        if len(own) == 1 and id(own[0]) in places:
            start = places[id(own[0])]
        else:
            start = len(reducers)
            places |= {id(each): start + at for at, each in enumerate(own)}
            reducers += own
        slices.append(ReducerSlice(slot, start, start + len(own), names))
    return reducers, slices
