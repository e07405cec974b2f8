"""Recording with its right answers: settings are measured on it one after the other."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from acquatop.errors import UserError
from acquatop.lab.replay.clairvoyant import Clairvoyant
from acquatop.lab.replay.data import Data
from acquatop.lab.replay.measure import Measured, measure, measure_rows
from acquatop.lab.replay.oracle import Oracle
from acquatop.lab.replay.replay import Given, Replay
from acquatop.lab.replay.replayed_rows import ReplayedRows
from acquatop.lab.replay.right_rows import right_rows
from acquatop.lab.replay.row_trace import RowTrace, open_recorded
from acquatop.lab.replay.setting import CLAIRVOYANT, Setting
from acquatop.lab.replay.trace import Trace


class RightResult(NamedTuple):
    """A right result at its place; NaN if it has no single score."""

    closes_ms: int
    place: int
    name: str
    score: float


class ScoreBench:
    """Recording for a query whose results are ranked by a score alone."""

    def __init__(self, trace: Trace) -> None:
        self._offset = trace.bound.plan.offset
        self._replay = Replay(trace)
        self._trace, self._oracle = trace, Oracle(trace)
        self._right = {right.window: right for right in self._oracle}

    def measured(self, setting: Setting) -> Iterator[Measured]:
        """Yield the measures of each window's answer in a setting."""
        for given in self._answers(setting):
            yield measure(given, self._right[given.window], setting.k, self._offset)

    def right(self, most: int) -> Iterator[RightResult]:
        """Yield the first right results of each window, with their scores."""
        plan = self._trace.bound.plan
        sign = 1 if plan.score.descending else -1
        for right in self._right.values():
            shown = zip(right.identities, right.merits.tolist(), strict=True)
            best = islice(shown, plan.offset, plan.offset + most)
            for place, (name, merit) in enumerate(best, start=1):
                yield RightResult(right.closes_ms, place, name, sign * merit)

    def _answers(self, setting: Setting) -> Iterator[Given]:
        if setting.policy == CLAIRVOYANT:
            return Clairvoyant(self._trace, self._oracle).answers(setting)
        return self._replay.answers(setting)


class RowBench:
    """Recording for any other query: the rows of its answers are judged."""

    def __init__(self, trace: RowTrace) -> None:
        self._trace = trace
        self._replay = ReplayedRows(trace)
        self._right = {right.closes_ms: right for right in right_rows(trace)}

    def measured(self, setting: Setting) -> Iterator[Measured]:
        """Yield the measures of each answer in a setting."""
        if setting.policy == CLAIRVOYANT:
            hint = "it knows the scores of one window's results that are joined one by one"
            raise UserError(f"the clairvoyant cannot replay this query\n  hint: {hint}")
        cut = self._trace.cut(setting.k)
        for given in self._replay.answers(setting):
            yield measure_rows(given, self._right[given.closes_ms], cut)

    def right(self, most: int) -> Iterator[RightResult]:
        """Yield the right rows of each close; of those that tie at the cut, some."""
        cut = self._trace.cut(most)
        for right in self._right.values():
            rows = right.in_favour_of([])
            kept = range(len(rows)) if cut is None else cut.kept(*right.groups_and_classes(rows))
            for place, at in enumerate(kept, start=1):
                yield RightResult(right.closes_ms, place, right.names[rows[at]], math.nan)


class Bench:
    """A recording with its right answers, to measure settings one after the other."""

    def __init__(
        self, data: Data, seed: int, folder: Path, items_per_request: int | None = None
    ) -> None:
        trace = open_recorded(*data.write(seed, folder), items_per_request=items_per_request)
        self.notes = trace.notes
        self._bench = ScoreBench(trace) if isinstance(trace, Trace) else RowBench(trace)

    def measured(self, setting: Setting) -> Iterator[Measured]:
        """Yield the measures of each window's answer in a setting."""
        return self._bench.measured(setting)

    def right(self, most: int) -> Iterator[RightResult]:
        """Yield the first right results of each close."""
        return self._bench.right(most)
