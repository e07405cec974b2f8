"""Solutions in columns: those of each key form one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from replica.store.columns import AnyArray, column, grown, positions_of, room_for
from replica.store.contract import BoolArray, IntArray, Solution
from replica.store.runs import Runs, runs_at
from replica.store.term_column import TermColumn

_FEW = 1024
"""Number of unused places below which they are tolerated."""


class SolutionRuns:
    """Any number of solutions by row, in their given order.

    A row takes 8 bytes, a solution the size of its terms
    (:class:`~replica.store.term_column.TermColumn`). Unused places are freed before they are more
    than half. Reading and setting takes O(solutions).

    >>> runs = SolutionRuns(["v"])
    >>> runs.make_room(1)
    >>> runs.set(np.array([0]), [[{"v": "<urn:b>"}, {}]]).tolist(), runs.solutions(0)
    ([True], [{'v': '<urn:b>'}, {}])
    """

    def __init__(self, variables: Sequence[str]) -> None:
        self._terms = {name: TermColumn() for name in variables}
        self._starts = column(0, 0, np.int32)
        self._counts = column(0, 0, np.int32)
        self._capacity = 0
        self._used = 0
        self._live = 0

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return (
            self._starts.nbytes
            + self._counts.nbytes
            + sum(terms.nbytes for terms in self._terms.values())
        )

    def make_room(self, capacity: int) -> None:
        """Make room for rows up to a number."""
        self._starts = grown(self._starts, capacity, 0)
        self._counts = grown(self._counts, capacity, 0)

    def counts(self, rows: IntArray) -> IntArray:
        """Return the number of solutions of each row, 0 for row -1."""
        return self._counts[rows].astype(np.int64)

    def runs(self, rows: IntArray, *, least: int = 0) -> Runs:
        """Return the places of some rows; with ``least`` 1, a row without any has the place -1."""
        return runs_at(self._starts[rows], self._counts[rows], least=least)

    def column(self, variable: str) -> TermColumn:
        """Return a variable's terms by place; do not change it."""
        return self._terms[variable]

    def take_over(self, columns: Sequence[TermColumn], present: BoolArray, used: int) -> None:
        """Take columns with a place for each of the first rows; others than ``present`` have none.

        There must be no solutions so far.
        """
        self._terms = dict(zip(self._terms, columns, strict=True))
        self._starts[:used] = np.arange(used)
        self._counts[:used] = present[:used]
        self._used, self._live = used, int(present[:used].sum())
        self._capacity = len(self._starts) - 1
        self._compact()

    def solutions(self, row: int) -> list[dict[str, str]]:
        """Return a row's solutions."""
        start = self._starts.item(row)
        places = np.arange(start, start + self._counts.item(row))
        solutions: list[dict[str, str]] = [{} for _ in places]
        for name, terms in self._terms.items():
            for solution, term in zip(solutions, terms.terms(places), strict=True):
                if term is not None:
                    solution[name] = term
        return solutions

    def set(self, rows: IntArray, solutions: Sequence[Sequence[Solution]]) -> BoolArray:
        """Replace the solutions of rows, each given once; return True for those that changed."""
        counts = np.fromiter(map(len, solutions), np.int64, len(solutions))
        changed: BoolArray = counts != self._counts[rows]
        moved = np.flatnonzero(changed)
        self.clear(rows[moved])
        self._place(rows[moved], counts[moved])
        places = positions_of(self._starts[rows].astype(np.int64), counts)
        owners = np.repeat(np.arange(len(rows)), counts)
        for name, terms in self._terms.items():
            is_other = terms.set(
                places, [solution.get(name) for each in solutions for solution in each]
            )
            changed[owners[is_other]] = True
        return changed

    def clear(self, rows: IntArray) -> None:
        """Remove the solutions of some rows, each given once."""
        counts = self.counts(rows)
        places = positions_of(self._starts[rows].astype(np.int64), counts)
        for terms in self._terms.values():
            terms.clear(places)
        self._counts[rows] = 0
        self._live -= len(places)

    def state(self, used: int) -> dict[str, AnyArray]:
        """Return the state of the first ``used`` rows as columns."""
        self._compact()
        columns = {"starts": self._starts[:used], "counts": self._counts[:used]}
        for at, terms in enumerate(self._terms.values()):
            columns.update(
                {f"terms{at}.{name}": each for name, each in terms.state(self._used).items()}
            )
        return columns

    def resume(self, state: Mapping[str, AnyArray], used: int) -> None:
        """Continue from a state; raises ValueError if it is invalid. There must be room for it."""
        starts, counts = state["starts"].astype(np.int64), state["counts"].astype(np.int64)
        if not len(starts) == len(counts) == used or (counts < 0).any():
            raise ValueError("the solutions' places are not as they should be")
        places = positions_of(starts, counts)
        if not np.array_equal(np.sort(places), np.arange(len(places))):
            raise ValueError("the solutions' places are not as they should be")
        self._starts[:used], self._counts[:used] = starts, counts
        self._used = self._live = len(places)
        self._make_places(len(places))
        for at, terms in enumerate(self._terms.values()):
            start = f"terms{at}."
            mine = {
                name[len(start) :]: each for name, each in state.items() if name.startswith(start)
            }
            terms.resume(mine, len(places))

    def _place(self, rows: IntArray, counts: IntArray) -> None:
        """Allot places to rows that have no solutions."""
        count = int(counts.sum())
        gone = self._used - self._live
        if gone > max(_FEW, self._live) or (
            self._used + count > self._capacity and gone > self._live // 4
        ):
            self._compact()
        self._make_places(self._used + count)
        self._starts[rows] = self._used + np.cumsum(counts) - counts
        self._counts[rows] = counts
        self._used += count
        self._live += count

    def _make_places(self, needed: int) -> None:
        capacity = room_for(needed, self._capacity)
        if capacity > self._capacity:
            self._capacity = capacity
            for terms in self._terms.values():
                terms.make_room(capacity)

    def _compact(self) -> None:
        """Make the runs contiguous, in the rows' order."""
        rows = np.flatnonzero(self._counts)
        counts = self.counts(rows)
        places = positions_of(self._starts[rows].astype(np.int64), counts)
        self._capacity = room_for(len(places), 0)
        for terms in self._terms.values():
            terms.keep(places, self._capacity)
        self._starts[:] = 0
        self._starts[rows] = np.cumsum(counts) - counts
        self._used = self._live
