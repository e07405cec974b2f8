"""Columns that are made of the sides' solutions at a close: ages, and values of before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from acquatop.ingest.instant_terms import instants_of
from acquatop.query.joined_windows.side import WindowSide
from acquatop.query.stream_history import StreamHistory
from acquatop.topk.contract import FloatArray
from replica.terms import number_of
from rspql.plan import AtClose, StreamPast, TopKPlan


@dataclass(frozen=True)
class MadeColumns:
    """Numbers and terms by variable, each with the position of the side whose rows they are of.

    ``reason`` says why they are uncertain; it is None if they are not.
    """

    numbers: Mapping[str, tuple[int, FloatArray]] = field(default_factory=dict)
    terms: Mapping[str, tuple[int, Sequence[str]]] = field(default_factory=dict)
    reason: str | None = None


class ColumnMaker:
    """Maker of what a plan's score needs ``at_close``, with the history of the sides' values.

    O(solutions that the sides show) at each close.
    """

    def __init__(self, plan: TopKPlan, sides: Sequence[WindowSide]) -> None:
        self._at_close = plan.at_close or AtClose()
        self._sides = sides
        self._owners = {
            name: number
            for number, part in reversed([*enumerate(plan.parts)])
            for name in part.bound
        }
        self._histories = [StreamHistory(each) for each in self._at_close.past]

    def nothing(self) -> MadeColumns:
        """Return the columns of no solutions."""
        return MadeColumns({name: (0, np.empty(0)) for name in self._at_close.names})

    def make(self, closes_ms: int, now_ms: int) -> MadeColumns:
        """Note the values of a close, and return the columns."""
        reason = self._note(closes_ms)
        numbers: dict[str, tuple[int, FloatArray]] = {}
        terms: dict[str, tuple[int, Sequence[str]]] = {}
        if self._at_close.now:
            numbers[self._at_close.now] = 0, np.full(len(self._sides[0].rows), float(now_ms))
        for name, of in self._at_close.instants:
            owner = self._owners[of]
            numbers[name] = owner, instants_of(self._sides[owner].column(of))
        for history in self._histories:
            owner = self._owner(history.plan)
            for name, texts in history.before(
                _rows(self._sides[owner], history), closes_ms
            ).items():
                terms[name] = owner, texts
                numbers[name] = owner, np.array(list(map(number_of, texts)), dtype=np.float64)
        return MadeColumns(numbers, terms, reason)

    def doubt(self) -> None:
        """Note that a window that has closed may lack a late record."""
        for history in self._histories:
            history.doubt()

    def _note(self, closes_ms: int) -> str | None:
        """Note the values of a close; return why values of before are uncertain."""
        is_certain = not any(side.is_uncertain for side in self._sides)
        for history in self._histories:
            side = self._sides[self._owner(history.plan)]
            history.note(_rows(side, history), closes_ms, is_certain=is_certain)
        reasons = (history.reason(closes_ms) for history in self._histories)
        return next((each for each in reasons if each), None)

    def _owner(self, plan: StreamPast) -> int:
        """Return the position of the side that says a value by its keys."""
        names = {*plan.keys, *(each.variable for each in plan.past)}
        bound = (set(side.bound.plan.projection) for side in self._sides)
        return next(at for at, each in enumerate(bound) if names <= each)

    def snapshot(self) -> Mapping[str, bytes]:
        """Return the histories."""
        return {f"past{at}": each.snapshot() for at, each in enumerate(self._histories)}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the histories."""
        for at, history in enumerate(self._histories):
            history.resume(parts[f"past{at}"])


def _rows(side: WindowSide, history: StreamHistory) -> list[dict[str, str]]:
    names = tuple(dict.fromkeys((*history.plan.keys, *history.variables)))
    columns = (side.column(name).to_pylist() for name in names)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
