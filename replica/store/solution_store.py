"""A replica of joins with many: every solution that the remote has for a key, and when each key was fetched."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from replica.store.contract import NEVER, WHOLE, BoolArray, IntArray, Solution, Stored
from replica.store.keyed_store import KeyedStore, limit_of
from replica.store.snapshot import SnapshotError, State, damaged, named, pack, unpack
from replica.store.solution_runs import SolutionRuns

_KIND, _VERSION = "solution store", 2


class SolutionStore(KeyedStore):
    """All solutions by key, as many as the remote has; a key that it has none for is remembered too.

    Without a ``key_variable`` all that the remote answers belongs to the one key ``WHOLE``. A key's
    solutions are a multiset in the terms' order, and give the key and the store's variables.
    Storing n solutions takes O(n log n). Its history has no numbers: a key may have many, or none.

    >>> store = SolutionStore("user", ["user", "friend"])
    >>> answer = [{"user": "<urn:a>", "friend": "<urn:c>"}, {"user": "<urn:a>", "friend": "<urn:b>"}]
    >>> store.put(["<urn:a>", "<urn:z>"], answer, now=5.0).changed
    ('<urn:a>', '<urn:z>')
    >>> [solution["friend"] for solution in store.solutions("<urn:a>")], store.solutions("<urn:z>")
    (['<urn:b>', '<urn:c>'], ())
    """

    def __init__(self, key_variable: str | None, variables: Iterable[str], *, limit: int | None = None) -> None:
        super().__init__((), limit)
        self.key_variable = key_variable
        self.variables = tuple(variables)
        self._names = sorted({*self.variables} - {key_variable})
        self._runs = SolutionRuns(self._names)

    def __len__(self) -> int:
        """Return how many keys have a solution."""
        return int(np.count_nonzero(self.present(self.all_rows())))

    def __contains__(self, key: str) -> bool:
        """Say whether the remote has ever answered for a key, be it with nothing."""
        return bool(self.rows([key])[0] >= 0)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes, the keys' own included."""
        return super().nbytes + self._runs.nbytes

    def solutions(self, key: str) -> Sequence[Solution]:
        """Return what is known of a key: none both when the remote has none and when it was never asked."""
        row = int(self.rows([key])[0])
        if row < 0:
            return ()
        of_key = {} if self.key_variable is None else {self.key_variable: key}
        return tuple({**of_key, **solution} for solution in self._runs.solutions(row))

    def present(self, rows: IntArray) -> BoolArray:
        """Return whether the remote had a solution for each row's key when it was last asked."""
        return self.counts(rows) > 0

    def counts(self, rows: IntArray) -> IntArray:
        """Return how many solutions there are for each row's key, 0 for row -1."""
        return self._runs.counts(rows)

    def put(self, asked: Iterable[str], solutions: Iterable[Solution], now: float, *, pushed: bool = False) -> Stored:
        """Store what the remote answered; a key asked for and not answered has no solution.

        ``pushed`` says that the remote told of changes of its own accord, when they happened.
        """
        by_key, asked_for = self._by_key(asked, solutions)
        places, rows = self._rows_to_store(list(by_key), asked_for)
        # A late answer to an older question says nothing new.
        current = now >= self.history.fetched_at[rows]
        places, rows = places[current], rows[current]
        answered = list(by_key.items())
        found = [answered[at] for at in places.tolist()]
        is_new = self.fetched_at(rows) == NEVER
        changed = self._runs.set(rows, [self._ordered(each) for _, each in found])
        self.history.observe(rows, now, changed, {}, {}, pushed=pushed)
        return Stored(tuple(found[at][0] for at in np.flatnonzero(changed | is_new).tolist()), ambiguous=0)

    def snapshot(self) -> bytes:
        """Return all that it knows as bytes, from which ``restore`` makes another like it."""
        settings = {"key_variable": self.key_variable, "variables": self.variables, **self._settings()}
        columns = self._columns()
        runs = self._runs.columns(len(columns["keys.lengths"]))
        return pack(_KIND, _VERSION, State(settings, {**columns, **named("runs", runs)}))

    @classmethod
    def restore(cls, snapshot: bytes) -> SolutionStore:
        """Return a store that knows what another knew; raises SnapshotError for anything but such bytes."""
        state = unpack(_KIND, _VERSION, snapshot)
        try:
            store = cls(state.settings["key_variable"], state.settings["variables"], limit=limit_of(state.settings))
            used = store._restore(state)
            store._runs.restore(state.part("runs"), used)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise damaged(error) from error
        return store

    def resume(self, snapshot: bytes) -> None:
        """Know what another of the same variables knew, and nothing else; raises SnapshotError if it cannot.

        The limit stays as it is.
        """
        other = self.restore(snapshot)
        if (other.key_variable, other.variables) != (self.key_variable, self.variables):
            raise SnapshotError(f"this is a snapshot of a store of {', '.join(other.variables)}")
        self._become(other)
        self._runs = other._runs

    def _by_key(self, asked: Iterable[str], solutions: Iterable[Solution]) -> tuple[dict[str, list[Solution]], int]:
        """Return the solutions by key, and how many keys were asked for, which come first."""
        if self.key_variable is None:
            return {WHOLE: list(solutions)}, 1
        by_key: dict[str, list[Solution]] = {key: [] for key in asked}
        asked_for = len(by_key)
        for solution in solutions:
            if self.key_variable in solution:
                by_key.setdefault(solution[self.key_variable], []).append(solution)
        if len(by_key) > asked_for:
            # The order in which the remote answers must not matter.
            others = sorted(list(by_key)[asked_for:])
            by_key |= {key: by_key.pop(key) for key in others}
        return by_key, asked_for

    def _ordered(self, solutions: list[Solution]) -> list[Solution]:
        return solutions if len(solutions) < 2 else sorted(solutions, key=self._cells)

    def _cells(self, solution: Solution) -> tuple[tuple[str, str], ...]:
        return tuple((name, solution[name]) for name in self._names if name in solution)

    def _make_room(self, capacity: int) -> None:
        super()._make_room(capacity)
        self._runs.make_room(capacity)

    def _forget(self, rows: IntArray) -> None:
        super()._forget(rows)
        self._runs.clear(rows)
