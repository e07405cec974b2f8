"""Terms, by position, of the solutions that may still be shown."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from acquatop.ingest.solution_columns import term_column
from acquatop.topk.contract import IntArray
from connectors.mapping import TIME

_NONE: IntArray = np.empty(0, dtype=np.int64)
_FEWEST = 1_024
"""Number of solutions up to which all are kept, whether they matter or not."""


class SolutionTerms:
    """Terms of solutions that may still be shown; others are dropped from time to time.

    Memory grows with the solutions that matter: at most twice as many are held, and one batch.
    """

    def __init__(self, variables: tuple[str, ...]) -> None:
        self._variables = variables
        self._tables: list[pa.Table] = []
        self._count = 0
        self._room = _FEWEST
        self._positions = _NONE
        """Positions of the solutions in the only table; of others if there are more."""

    def add(self, solutions: pa.Table) -> None:
        """Add solutions in order, with positions as times."""
        self._tables.append(solutions.select([TIME, *map(term_column, self._variables)]))
        self._count += len(solutions)

    def trim(self, mattering: Callable[[], IntArray]) -> None:
        """Drop solutions that no longer matter, if there may be many.

        The function ``mattering`` returns the positions that may still be shown.
        """
        if self._count > self._room:
            held = self.table()
            kept = held.filter(pa.array(np.isin(_positions(held), mattering())))
            self._tables, self._count = [kept.combine_chunks()], len(kept)
            self._positions = _NONE
            self._room = max(_FEWEST, 2 * len(kept))

    def __len__(self) -> int:
        return self._count

    def terms(self, position: int) -> dict[str, str]:
        """Return the N-Triples terms that a solution binds, by variable."""
        held = self.table()
        at = bisect_left(self._positions, position)
        assert self._positions[at] == position, "what can be shown is held"
        return {name: held.column(term_column(name))[at].as_py() for name in self._variables}

    def table(self) -> pa.Table:
        """Return all that is held, in order."""
        if len(self._tables) > 1:
            self._tables = [pa.concat_tables(self._tables).combine_chunks()]
        if len(self._positions) != self._count:
            self._positions = _positions(self._tables[0])
        return self._tables[0]

    def resume(self, table: pa.Table) -> None:
        """Restore a table of held solutions."""
        self._tables, self._count, self._room = [table], len(table), max(_FEWEST, 2 * len(table))
        self._positions = _NONE


def _positions(solutions: pa.Table) -> IntArray:
    return np.asarray(solutions.column(TIME).to_numpy())
