"""Store for joins with many solutions per key: all solutions and fetch times."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from replica.snapshot import State, pack, reading, unpack
from replica.store.contract import NEVER, WHOLE, BoolArray, IntArray, Solution, Stored
from replica.store.keyed_store import KeyedStore
from replica.store.solution_runs import SolutionRuns

_KIND, _VERSION = "solution store", 2


class SolutionStore(KeyedStore):
    """All solutions by key; a key without any is stored too.

    Without a ``key_variable`` the whole answer belongs to the one key ``WHOLE``. A key's solutions
    are a multiset in the terms' order, and contain the key and the store's variables. Storing n
    solutions takes O(n log n). The history has no numbers, as a key may have many, or none.

    >>> store = SolutionStore("user", ["user", "friend"])
    >>> answer = [
    ...     {"user": "<urn:a>", "friend": "<urn:c>"},
    ...     {"user": "<urn:a>", "friend": "<urn:b>"},
    ... ]
    >>> store.put(["<urn:a>", "<urn:z>"], answer, now=5.0).changed
    ('<urn:a>', '<urn:z>')
    >>> [solution["friend"] for solution in store.solutions("<urn:a>")], store.solutions("<urn:z>")
    (['<urn:b>', '<urn:c>'], ())
    """

    def __init__(
        self,
        key_variable: str | None,
        variables: Iterable[str],
        *,
        numbers: tuple[str, ...] = (),
        limit: int | None = None,
    ) -> None:
        super().__init__(key_variable, tuple(variables), numbers=numbers, limit=limit)
        self._names = sorted({*self.variables} - {key_variable})
        self._runs = self._new_runs()

    def _new_runs(self) -> SolutionRuns:
        return SolutionRuns(self._names)

    def _empty(self) -> SolutionStore:
        """Return an empty store of the same variables."""
        return SolutionStore(self.key_variable, self.variables)

    def __len__(self) -> int:
        """Return how many keys have a solution."""
        return int(np.count_nonzero(self.present(self.all_rows())))

    def __contains__(self, key: str) -> bool:
        """Return True if the remote has ever answered for a key, even with nothing."""
        return bool(self.rows([key])[0] >= 0)

    @property
    def nbytes(self) -> int:
        """Size in bytes, including the keys' texts."""
        return super().nbytes + self._runs.nbytes

    def solutions(self, key: str) -> Sequence[Solution]:
        """Return a key's known solutions: none if the remote has none, or was never asked."""
        row = int(self.rows([key])[0])
        if row < 0:
            return ()
        of_key = {} if self.key_variable is None else {self.key_variable: key}
        return tuple({**of_key, **solution} for solution in self._runs.solutions(row))

    def present(self, rows: IntArray) -> BoolArray:
        """Return True for each row whose key had a solution when the remote was last asked."""
        return self.counts(rows) > 0

    def counts(self, rows: IntArray) -> IntArray:
        """Return the number of solutions for each row's key, 0 for row -1."""
        return self._runs.counts(rows)

    def put(
        self,
        asked: Iterable[str],
        solutions: Iterable[Solution],
        now: float,
        *,
        pushed: bool = False,
    ) -> Stored:
        """Store an answer; a key asked for and not answered has no solution.

        ``pushed`` means that the remote announced the changes itself, when they happened.
        """
        by_key, asked_for = self._by_key(asked, solutions)
        places, rows = self._rows_to_store(list(by_key), asked_for)
        # A late answer to an older question is no news.
        current = now >= self.history.fetched_at[rows]
        places, rows = places[current], rows[current]
        answered = list(by_key.items())
        found = [answered[at] for at in places.tolist()]
        is_first = self.fetched_at(rows) == NEVER
        changed = self._set(rows, [self._ordered(each) for _, each in found], now, pushed=pushed)
        told, first = (
            tuple(found[at][0] for at in np.flatnonzero(each).tolist())
            for each in (changed, is_first)
        )
        return Stored(told, ambiguous=0, first=first)

    def _set(
        self, rows: IntArray, solutions: list[list[Solution]], now: float, *, pushed: bool
    ) -> BoolArray:
        """Replace the solutions of rows; return True for those that are new or changed."""
        is_new = self.fetched_at(rows) == NEVER
        changed = self._runs.set(rows, solutions)
        self.history.observe(rows, now, changed, {}, {}, pushed=pushed)
        changed |= is_new
        return changed

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        used = self._index.used
        tables = {**self._tables(used), "runs": self._runs.state(used)}
        return pack(_KIND, _VERSION, State(self._settings(), tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot of a store of the same variables; else raises SnapshotError.

        The limit stays as it is.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        other = self._empty()
        with reading():
            used = other._resume(state)
            other._runs.resume(state.tables["runs"], used)
        self._become(other)
        self._runs = other._runs

    def _by_key(
        self, asked: Iterable[str], solutions: Iterable[Solution]
    ) -> tuple[dict[str, list[Solution]], int]:
        """Return the solutions by key, asked keys first, and how many keys were asked for."""
        if self.key_variable is None:
            return {WHOLE: list(solutions)}, 1
        by_key: dict[str, list[Solution]] = {key: [] for key in asked}
        asked_for = len(by_key)
        for solution in solutions:
            if self.key_variable in solution:
                by_key.setdefault(solution[self.key_variable], []).append(solution)
        if len(by_key) > asked_for:
            # The order of the remote's answer must not matter.
            others = sorted(list(by_key)[asked_for:])
            by_key |= {key: by_key.pop(key) for key in others}
        return by_key, asked_for

    def _ordered(self, solutions: list[Solution]) -> list[Solution]:
        return solutions if len(solutions) < 2 else sorted(solutions, key=self._cells)

    def _cells(self, solution: Solution) -> tuple[tuple[object, ...], ...]:
        """Return what orders a key's solutions."""
        return tuple((name, solution[name]) for name in self._names if name in solution)

    def _make_room(self, capacity: int) -> None:
        super()._make_room(capacity)
        self._runs.make_room(capacity)

    def _forget(self, rows: IntArray) -> None:
        super()._forget(rows)
        self._runs.clear(rows)
