"""Solutions by their positions: those that may still be shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from acquatop.ingest.match import term_column
from acquatop.topk.contract import IntArray
from connectors.mapping import TIME

_FEWEST = 1_024
"""Up to how many solutions are kept without asking which of them matter."""


class HeldSolutions:
    """The terms of solutions that may still be shown; what matters no more is let go now and then.

    Memory grows with what matters: at most twice as much is held, and one batch.
    """

    def __init__(self, variables: tuple[str, ...]) -> None:
        self._variables = variables
        self._tables: list[pa.Table] = []
        self._count = 0
        self._room = _FEWEST

    def add(self, solutions: pa.Table) -> None:
        """Take in solutions, their positions for times, in order."""
        self._tables.append(solutions.select([TIME, *map(term_column, self._variables)]))
        self._count += len(solutions)

    def trim(self, mattering: Callable[[], IntArray]) -> None:
        """Let go of what matters no more, if that may be much; ``mattering`` says which positions may be shown."""
        if self._count > self._room:
            held = self.table()
            kept = held.filter(pa.array(np.isin(_positions(held), mattering())))
            self._tables, self._count = [kept.combine_chunks()], len(kept)
            self._room = max(_FEWEST, 2 * len(kept))

    def __len__(self) -> int:
        return self._count

    def terms(self, position: int) -> dict[str, str]:
        """Return the N-Triples terms that a solution binds, by variable."""
        held = self.table()
        at = int(np.searchsorted(_positions(held), position))
        assert _positions(held)[at] == position, "what can be shown is held"
        return {name: held.column(term_column(name))[at].as_py() for name in self._variables}

    def table(self) -> pa.Table:
        """Return all that is held, in order."""
        if len(self._tables) > 1:
            self._tables = [pa.concat_tables(self._tables).combine_chunks()]
        return self._tables[0]

    def resume(self, table: pa.Table) -> None:
        """Go on from what was held."""
        self._tables, self._count, self._room = [table], len(table), max(_FEWEST, 2 * len(table))


def _positions(solutions: pa.Table) -> IntArray:
    return np.asarray(solutions.column(TIME).to_numpy())
