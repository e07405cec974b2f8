"""Rows of a table: its solutions, by keys whose order decides between equal merits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from acquatop.topk.contract import AnyArray
from replica.store import Solution

_END = "\0"
"""Character that no term has, and that comes before all others."""


class TableRows:
    """Solutions that are held, by row and by the subject that they are about.

    >>> rows = TableRows("user")
    >>> first = rows.hold([{"user": "<urn:b>", "n": '"1"'}, {"user": "<urn:a>", "n": '"2"'}])
    >>> sorted(first.tolist())[0][:5], len(rows)
    ('urn:a', 2)
    >>> rows.of(["<urn:b>"]) == [first.tolist()[0]], rows.keep(first[1:])
    (True, None)
    >>> len(rows)
    1
    """

    def __init__(self, key: str) -> None:
        self.key = key
        self._solutions: dict[str, Solution] = {}
        self._of: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._solutions)

    def __getitem__(self, row: str) -> Solution:
        return self._solutions[row]

    def row(self, solution: Solution) -> str:
        """Return the row of a solution: the subject's text, then that of all its terms."""
        terms = (f"{name}={term}" for name, term in sorted(solution.items()))
        return _END.join((subject_of(solution, self.key), *terms))

    def hold(self, solutions: Iterable[Solution]) -> AnyArray:
        """Hold solutions; return their rows."""
        rows = []
        for solution in solutions:
            row = self.row(solution)
            self._solutions[row] = solution
            self._of.setdefault(solution[self.key], {})[row] = None
            rows.append(row)
        return as_column(rows)

    def of(self, keys: Iterable[str]) -> list[str]:
        """Return the rows held of some subjects."""
        return [row for key in keys for row in self._of.get(key, ())]

    def keep(self, rows: AnyArray) -> None:
        """Hold these rows alone. O(all that were held)."""
        kept = [self._solutions[row] for row in rows.tolist()]
        self._solutions, self._of = {}, {}
        self.hold(kept)

    def let_go(self, keys: Iterable[str]) -> None:
        """Hold nothing of some subjects any more."""
        for key in keys:
            for row in self._of.pop(key, ()):
                del self._solutions[row]

    def state(self) -> Sequence[Mapping[str, str]]:
        """Return the solutions held."""
        return [dict(each) for each in self._solutions.values()]


def subject_of(solution: Solution, key: str) -> str:
    """Return a solution's subject as text, whose order is SPARQL's: that of IRIs without brackets.

    >>> subject_of({"user": "<urn:a>"}, "user")
    'urn:a'
    """
    return solution[key].removeprefix("<").removesuffix(">")


def as_column(rows: Sequence[str]) -> AnyArray:
    """Return texts as a column."""
    column = np.empty(len(rows), dtype=object)
    column[:] = rows
    return column
