"""Store for joins with at most one solution per key: last known values and fetch times."""

from __future__ import annotations

import secrets
from collections.abc import Iterable

import numpy as np

from replica.number_size import NumberSize
from replica.snapshot import State, kind_of, pack, reading, unpack
from replica.store.columns import column, grown
from replica.store.contract import NEVER, BoolArray, FloatArray, IntArray, Solution, Stored
from replica.store.joined_store import JoinedStore
from replica.store.row_changes import RowChanges
from replica.store.term_column import TermColumn

_KIND, _VERSION = "replica store", 2


class ReplicaStore(JoinedStore):
    """Last known values by key; a key that the remote does not have is stored as absent.

    Looking up n keys and storing n solutions take O(n). A key has at most one solution (a 1:1 or
    N:1 join): of several, the first in the terms' order is kept and the others are counted. With
    one number a key takes less than 100 bytes besides its own text.

    >>> store = ReplicaStore("user", ["followers"])
    >>> seven = '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> store.put(
    ...     ["<urn:a>", "<urn:b>"], [{"user": "<urn:a>", "followers": seven}], now=5.0
    ... ).changed
    ('<urn:a>', '<urn:b>')
    >>> store.numbers("followers", store.rows(["<urn:a>", "<urn:b>", "<urn:c>"]))
    array([ 7., nan, nan])
    """

    key_variable: str

    def __init__(
        self, key_variable: str, variables: Iterable[str], *, limit: int | None = None
    ) -> None:
        others = tuple(name for name in variables if name != key_variable)
        super().__init__(key_variable, others, numbers=others, limit=limit)
        self._terms = {name: TermColumn() for name in self.variables}
        self._present: BoolArray = column(0, False, np.bool_)
        self._means: dict[str, float] = {}
        self._sizes: dict[str, NumberSize] = {}
        self.token = secrets.token_bytes(16)
        """Random bytes that no other store has."""
        self.changes = RowChanges()
        """Rows with new values, or with other keys or none."""

    def __len__(self) -> int:
        return self.held

    @property
    def nbytes(self) -> int:
        """Size in bytes, including the keys' texts."""
        return (
            super().nbytes
            + self._present.nbytes
            + sum(terms.nbytes for terms in self._terms.values())
        )

    def runs(self, rows: IntArray, *, least: int = 0) -> None:
        """Return None: each row is its own place."""
        return

    def numbers(self, variable: str, places: IntArray) -> FloatArray:
        """Return a variable's values as numbers, NaN if there is none."""
        return self._terms[variable].numbers(places)

    def floating(self, variable: str, places: IntArray) -> BoolArray:
        """Return a mask of the rows in which a variable is an xsd:float or xsd:double."""
        return self._terms[variable].floating(places)

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's known numbers, NaN if there are none."""
        if variable not in self._means:
            known = self._terms[variable].all_numbers()
            self._means[variable] = float(known.mean()) if len(known) else float("nan")
        return self._means[variable]

    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers."""
        if variable not in self._sizes:
            self._sizes[variable] = self._terms[variable].size()
        return self._sizes[variable]

    def present(self, rows: IntArray) -> BoolArray:
        """Return True for each row whose key the remote had when it was last asked."""
        return self._present[rows]

    def term(self, variable: str, key: str) -> str | None:
        """Return the N-Triples term of one value, None if there is none."""
        return self._terms[variable].term(int(self.rows([key])[0]))

    def terms(self, variable: str, places: IntArray) -> list[str | None]:
        """Return the N-Triples terms of some rows' values, None if there is none."""
        return self._terms[variable].terms(places)

    def distinct_terms(self, variable: str, places: IntArray) -> tuple[IntArray, list[str | None]]:
        """Return for each of some rows the number of its term, and the terms, each once."""
        return self._terms[variable].distinct_terms(places)

    def columns(self) -> tuple[list[TermColumn], BoolArray]:
        """Return the variables' columns by row, and which rows are present; do not change them."""
        return list(self._terms.values()), self._present

    def put(
        self,
        asked: Iterable[str],
        solutions: Iterable[Solution],
        now: float,
        *,
        pushed: bool = False,
    ) -> Stored:
        """Store an answer; a key asked for and not answered becomes absent.

        ``pushed`` means that the remote announced the changes itself, when they happened.
        """
        by_key, asked_for, ambiguous = self._by_key(asked, solutions)
        places, rows = self._rows_to_store(list(by_key), asked_for)
        # A late answer to an older question is no news.
        current = now >= self.history.fetched_at[rows]
        places, rows = places[current], rows[current]
        answered = list(by_key.items())
        found = [answered[at] for at in places.tolist()]
        is_first = self.fetched_at(rows) == NEVER
        changed = self._set(rows, [solution for _, solution in found], now, pushed=pushed)
        told, first = (
            tuple(found[at][0] for at in np.flatnonzero(each).tolist())
            for each in (changed, is_first)
        )
        return Stored(told, ambiguous, first)

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        used = self._index.used
        terms = {f"terms{at}": each.state(used) for at, each in enumerate(self._terms.values())}
        tables = {**self._tables(used), **terms, "rows": {"present": self._present[:used]}}
        return pack(_KIND, _VERSION, State(self._settings(), tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot of a store of the same variables; else raises SnapshotError.

        The limit stays as it is.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        other = ReplicaStore(self.key_variable, self.variables)
        with reading():
            used = other._resume(state)
            for at, terms in enumerate(other._terms.values()):
                terms.resume(state.tables[f"terms{at}"], used)
            other._present[:used] = state.tables["rows"]["present"]
        self._become(other)
        self._terms, self._present = other._terms, other._present
        self._means, self._sizes = {}, {}
        self.changes.note_all()

    def _by_key(
        self, asked: Iterable[str], solutions: Iterable[Solution]
    ) -> tuple[dict[str, Solution | None], int, int]:
        """Return solutions by key, asked keys first; how many were asked; how many were dropped."""
        by_key: dict[str, Solution | None] = dict.fromkeys(asked)
        asked_for, ambiguous = len(by_key), 0
        for solution in solutions:
            key = solution.get(self.key_variable)
            if key is None:
                continue
            known = by_key.get(key)
            if known is not None:
                ambiguous += 1
                solution = min(known, solution, key=_in_order)
            by_key[key] = solution
        if len(by_key) > asked_for:
            # The order of the remote's answer must not matter.
            others = sorted(list(by_key)[asked_for:])
            by_key |= {key: by_key.pop(key) for key in others}
        return by_key, asked_for, ambiguous

    def _set(
        self, rows: IntArray, solutions: list[Solution | None], now: float, *, pushed: bool
    ) -> BoolArray:
        present = np.array([solution is not None for solution in solutions], np.bool_)
        changed: BoolArray = self._present[rows] != present
        self._present[rows] = present
        before, after = {}, {}
        for name, terms in self._terms.items():
            before[name] = terms.numbers(rows)
            changed |= terms.set(
                rows, [None if solution is None else solution.get(name) for solution in solutions]
            )
            after[name] = terms.numbers(rows)
        if changed.any():
            self._means.clear()
            self._sizes.clear()
        is_new = self.fetched_at(rows) == NEVER
        self.history.observe(rows, now, changed, before, after, pushed=pushed)
        changed |= is_new
        self.changes.note(rows[changed], self.held)
        return changed

    def _make_room(self, capacity: int) -> None:
        super()._make_room(capacity)
        self._present = grown(self._present, capacity, False)
        for terms in self._terms.values():
            terms.make_room(capacity)

    def _forget(self, rows: IntArray) -> None:
        super()._forget(rows)
        self.changes.note(rows, self.held)
        self._present[rows] = False
        for terms in self._terms.values():
            terms.clear(rows)
        self._means.clear()
        self._sizes.clear()


def is_snapshot(snapshot: bytes) -> bool:
    """Return True if a snapshot is that of a :class:`ReplicaStore`."""
    return kind_of(snapshot) == _KIND


def _in_order(solution: Solution) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(solution.items()))
