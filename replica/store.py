"""The replica itself: keys, their last known values, and when each was fetched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replica.terms import number_of

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Solution = Mapping[str, str]
"""A remote's solution: variable name → N-Triples term."""

NEVER = float("-inf")


@dataclass(frozen=True)
class Stored:
    """What one delivery of solutions did: the keys whose values are new or other than before."""

    changed: tuple[str, ...]
    ambiguous: int


class ReplicaStore:
    """Last known values by key; a key the remote does not have is remembered as absent.

    Looking up n keys and storing n solutions take O(n). A key has at most one solution (a 1:1 or
    N:1 join); of several the first in the terms' order is kept and the others are counted.

    >>> store = ReplicaStore("user", ["followers"])
    >>> seven = '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> store.put(["<urn:a>", "<urn:b>"], [{"user": "<urn:a>", "followers": seven}], now=5.0).changed
    ('<urn:a>', '<urn:b>')
    >>> store.numbers("followers", store.rows(["<urn:a>", "<urn:b>", "<urn:c>"]))
    array([ 7., nan, nan])
    """

    def __init__(self, key_variable: str, variables: Iterable[str]) -> None:
        self.key_variable = key_variable
        self.variables = tuple(name for name in variables if name != key_variable)
        self._rows: dict[str, int] = {}
        self._terms: dict[str, list[str | None]] = {name: [] for name in self.variables}
        self._numbers: dict[str, FloatArray] = {name: np.empty(0) for name in self.variables}
        self._fetched = np.empty(0)
        self._present = np.empty(0, dtype=bool)

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, keys: Sequence[str]) -> IntArray:
        """Return each key's row, -1 where nothing is known of the key."""
        return np.fromiter((self._rows.get(key, -1) for key in keys), dtype=np.int64, count=len(keys))

    def numbers(self, variable: str, rows: IntArray) -> FloatArray:
        """Return a variable's values as numbers, NaN where there is none."""
        if not len(self):
            return np.full(len(rows), np.nan)
        return np.where(rows >= 0, self._numbers[variable][rows], np.nan)

    def mean(self, variable: str) -> float:
        """Return the mean of all that is known of a variable, NaN when nothing is."""
        known = self._numbers[variable][: len(self)]
        known = known[np.isfinite(known)]
        return float(known.mean()) if len(known) else float("nan")

    def fetched_at(self, rows: IntArray) -> FloatArray:
        """Return when each row was last fetched, ``NEVER`` for row -1."""
        return np.where(rows >= 0, self._fetched[rows], NEVER) if len(self) else np.full(len(rows), NEVER)

    def present(self, rows: IntArray) -> npt.NDArray[np.bool_]:
        """Return whether the remote had each row's key when it was last asked."""
        return (rows >= 0) & self._present[rows] if len(self) else np.zeros(len(rows), dtype=bool)

    def term(self, variable: str, key: str) -> str | None:
        """Return the N-Triples term of one value, None where there is none."""
        row = self._rows.get(key, -1)
        return self._terms[variable][row] if row >= 0 else None

    def put(self, asked: Iterable[str], solutions: Iterable[Solution], now: float) -> Stored:
        """Store what the remote answered; a key asked for and not answered becomes absent."""
        by_key: dict[str, Solution] = {key: {} for key in asked}
        ambiguous = 0
        for solution in sorted(solutions, key=lambda each: tuple(sorted(each.items()))):
            key = solution.get(self.key_variable)
            if key is None:
                continue
            if by_key.get(key):
                ambiguous += 1
            else:
                by_key[key] = solution
        changed = tuple(key for key, solution in by_key.items() if self._set(key, solution, now))
        return Stored(changed, ambiguous)

    def _set(self, key: str, solution: Solution, now: float) -> bool:
        row = self._rows.get(key)
        is_new = row is None
        if row is None:
            row = self._append(key)
        if now < self._fetched[row]:
            return False  # a late answer to an older question says nothing new
        self._fetched[row] = now
        present = bool(solution)
        changed = is_new or present != self._present[row]
        self._present[row] = present
        for name in self.variables:
            term = solution.get(name)
            if term != self._terms[name][row]:
                changed = True
                self._terms[name][row] = term
                self._numbers[name][row] = np.nan if term is None else number_of(term)
        return changed

    def _append(self, key: str) -> int:
        row = len(self._rows)
        if row == len(self._fetched):
            self._grow(max(64, 2 * row))
        self._rows[key] = row
        for name in self.variables:
            self._terms[name].append(None)
        return row

    def _grow(self, capacity: int) -> None:
        extra = capacity - len(self._fetched)
        self._fetched = np.concatenate([self._fetched, np.full(extra, NEVER)])
        self._present = np.concatenate([self._present, np.zeros(extra, dtype=bool)])
        for name, values in self._numbers.items():
            self._numbers[name] = np.concatenate([values, np.full(extra, np.nan)])
