"""Selection of the solutions of each pane that can matter, if scores never change.

The same solution twice is one: it has the same score, and its newest time counts. A solution with k
better ones in its pane is in no window's best k, as all of them lie in the same windows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from acquatop.ingest.reduce.identities import TieIdentities
from acquatop.ingest.reduce.pane_best import PaneRequest
from acquatop.ingest.reduce.panes import Positions, by_pane, within
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.ingest.solution_columns import IDENTITY, number_column
from acquatop.ingest.unscored import LIMIT, objects
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from acquatop.topk.order import best
from acquatop.windows import Windows
from connectors.mapping import TIME

_GROWTH = 8
"""Factor by which more rows are looked at until enough of them are different solutions."""


class KeptOfPane(NamedTuple):
    """Rows of one pane: the first of its windows, and the positions of some rows."""

    first: int
    rows: IntArray
    left_out: int
    """Number of the pane's other rows."""


class Prunable(Protocol):
    """Solutions of which each pane's best can be selected."""

    def __len__(self) -> int: ...
    @property
    def times(self) -> IntArray:
        """Event time of each solution."""

    def numbers(self, variable: str) -> FloatArray:
        """Return the values of a variable as numbers."""

    def identities_at(self, at: IntArray) -> AnyArray:
        """Return the identities at some positions; only these are made."""


@dataclass(frozen=True)
class PanePruning:
    """Selection of each pane's best different solutions, for one or more queries.

    ``numbers`` are the variables that all scores need. Solutions without a score are only counted
    in answers: the newest 10 000 are kept. O(rows) for each query, and O(r log r) for the r rows
    that repeat a pane's best.
    """

    windows: Windows
    requests: Sequence[PaneRequest]
    numbers: tuple[str, ...]

    def panes(self, solutions: Prunable) -> Iterator[KeptOfPane]:
        """Yield the rows to keep of each pane, in time order."""
        parts = tuple(map(solutions.numbers, self.numbers))
        every = np.arange(len(solutions))
        merits = [
            ReplicaScoring(each.score, None).merits_at(every, parts) for each in self.requests
        ]
        for first, _, at in by_pane(self.windows, solutions.times):
            kept = [
                self._kept(solutions, own, at, each.capacity)
                for each, own in zip(self.requests, merits, strict=True)
            ]
            rows = np.unique(np.concatenate(kept))
            yield KeptOfPane(first, rows, len(solutions.times[at]) - len(rows))

    @staticmethod
    def _kept(solutions: Prunable, merits: FloatArray, at: Positions, capacity: int) -> IntArray:
        """Return the positions of a pane's rows that matter to one query."""
        without = np.isnan(merits[at])
        if not without.any():
            return _best_of(solutions, merits, at, capacity)
        scored, others = (within(at, np.flatnonzero(each)) for each in (~without, without))
        if len(others) > LIMIT:
            others = _best_of(solutions, np.zeros(len(merits)), others, LIMIT)
        return np.concatenate([_best_of(solutions, merits, scored, capacity), others])


class PrunableTable:
    """Solutions as a table."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table
        self.times: IntArray = np.asarray(table.column(TIME).to_numpy(), dtype=np.int64)

    def __len__(self) -> int:
        return len(self._table)

    def numbers(self, variable: str) -> FloatArray:
        """Return the values of a variable as numbers."""
        return np.asarray(self._table.column(number_column(variable)).to_numpy())

    def identities_at(self, at: IntArray) -> AnyArray:
        """Return the identities at some positions."""
        return objects(self._table.column(IDENTITY).take(pa.array(at)).to_pylist())


def _best_of(solutions: Prunable, merits: FloatArray, at: Positions, capacity: int) -> IntArray:
    """Return the positions of the best ``capacity`` different solutions of some rows.

    Each is at its newest time.
    """
    of_rows, times, looked_at = merits[at], solutions.times[at], capacity
    while True:
        order = best(looked_at, of_rows, times, TieIdentities(solutions, at))
        rows = within(at, order)
        # Equal solutions have equal merits, so the newest comes first.
        firsts: dict[str, int] = {}
        for row, identity in zip(
            rows.tolist(), solutions.identities_at(rows).tolist(), strict=True
        ):
            firsts.setdefault(identity, row)
        if len(firsts) >= capacity or looked_at >= len(of_rows):
            return np.array(list(firsts.values())[:capacity], dtype=np.int64)
        looked_at *= _GROWTH
