"""Store for joins with many solutions per key from which scores are computed."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator

import numpy as np

from replica.freshness.history import Lane
from replica.number_size import NumberSize
from replica.snapshot import reading
from replica.store.contract import NEVER, BoolArray, FloatArray, IntArray, Solution
from replica.store.joined_store import JoinedStore
from replica.store.replica_store import ReplicaStore, is_snapshot
from replica.store.row_changes import RowChanges
from replica.store.runs import Runs
from replica.store.solution_store import SolutionStore
from replica.terms import number_of

Numbers = dict[str, FloatArray]

_LANES = 100
"""Number of a key's solutions from which the history learns at most."""


class RunStore(SolutionStore, JoinedStore):
    """All solutions by key, with their numbers as columns, and a history that learns from them.

    A key's solutions lie at neighbouring places. Those of equal terms besides numbers are taken for
    the same before and after a change, as long as a key has as many as before.

    >>> store = RunStore("machine", ["machine", "tool", "age"])
    >>> seven = '"7"^^<http://www.w3.org/2001/XMLSchema#integer>'
    >>> found = [{"machine": "<urn:a>", "tool": tool, "age": seven} for tool in ("<urn:t>", '"u"')]
    >>> store.put(["<urn:a>", "<urn:b>"], found, now=5.0).changed
    ('<urn:a>', '<urn:b>')
    >>> runs = store.runs(store.rows(["<urn:b>", "<urn:a>"]))
    >>> store.numbers("age", runs.places), runs.owners
    (array([7., 7.]), array([1, 1]))
    """

    key_variable: str

    def __init__(
        self, key_variable: str, variables: Iterable[str], *, limit: int | None = None
    ) -> None:
        others = tuple(name for name in variables if name != key_variable)
        super().__init__(key_variable, others, numbers=others, limit=limit)
        self._means: dict[str, float] = {}
        self._sizes: dict[str, NumberSize] = {}
        self.token = secrets.token_bytes(16)
        """Random bytes that no other store has."""
        self.changes = RowChanges()
        """Rows with new values, or with other keys or none."""

    def __len__(self) -> int:
        return self.held

    def runs(self, rows: IntArray, *, least: int = 0) -> Runs:
        """Return the places of some rows; with ``least`` 1, a row without any has the place -1."""
        return self._runs.runs(rows, least=least)

    def numbers(self, variable: str, places: IntArray) -> FloatArray:
        """Return a variable's values as numbers, NaN if there is none."""
        return self._runs.column(variable).numbers(places)

    def floating(self, variable: str, places: IntArray) -> BoolArray:
        """Return a mask of the places at which a variable is an xsd:float or xsd:double."""
        return self._runs.column(variable).floating(places)

    def terms(self, variable: str, places: IntArray) -> list[str | None]:
        """Return the N-Triples terms of some places' values, None if there is none."""
        return self._runs.column(variable).terms(places)

    def distinct_terms(self, variable: str, places: IntArray) -> tuple[IntArray, list[str | None]]:
        """Return for each of some places the number of its term, and the terms, each once."""
        return self._runs.column(variable).distinct_terms(places)

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's known numbers, NaN if there are none."""
        if variable not in self._means:
            known = self._runs.column(variable).all_numbers()
            self._means[variable] = float(known.mean()) if len(known) else float("nan")
        return self._means[variable]

    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers."""
        if variable not in self._sizes:
            self._sizes[variable] = self._runs.column(variable).size()
        return self._sizes[variable]

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, also from that of a store with one solution for each key."""
        if is_snapshot(snapshot):
            self._resume_one(snapshot)
        else:
            super().resume(snapshot)
        self._means, self._sizes = {}, {}
        self.changes.note_all()

    def _resume_one(self, snapshot: bytes) -> None:
        one = ReplicaStore(self.key_variable, self.variables)
        one.resume(snapshot)
        with reading():
            self._become(one)
            self._runs = self._new_runs()
            self._runs.make_room(self._capacity)
            columns, present = one.columns()
            by_name = dict(zip(one.variables, columns, strict=True))
            self._runs.take_over([by_name[name] for name in self._names], present, self._index.used)

    def _empty(self) -> RunStore:
        return RunStore(self.key_variable, self.variables)

    def _set(
        self, rows: IntArray, solutions: list[list[Solution]], now: float, *, pushed: bool
    ) -> BoolArray:
        is_new = self.fetched_at(rows) == NEVER
        before = self._lanes(rows)
        changed = self._runs.set(rows, solutions)
        if changed.any():
            self._means.clear()
            self._sizes.clear()
        first, *more = self._together(rows, before)
        self.history.observe(
            rows, now, changed, first.before, first.after, pushed=pushed, more=more
        )
        changed |= is_new
        self.changes.note(rows[changed], self.held)
        return changed

    def _lanes(self, rows: IntArray) -> tuple[Runs, Numbers]:
        runs = self.runs(rows)
        return runs, {name: self.numbers(name, runs.places) for name in self.variables}

    def _together(self, rows: IntArray, before: tuple[Runs, Numbers]) -> Iterator[Lane]:
        """Yield the first numbers of each row before and after, then further ones of some rows.

        Before a change there is none if the row had more or fewer solutions.
        """
        runs, numbers = before
        now_runs, now_numbers = self._lanes(rows)
        counts = np.bincount(now_runs.owners, minlength=len(rows))
        then = np.bincount(runs.owners, minlength=len(rows))
        firsts, firsts_then = np.cumsum(counts) - counts, np.cumsum(then) - then
        for lane in range(min(_LANES, max(1, int(counts.max(initial=0))))):
            at = np.flatnonzero(counts > lane) if lane else np.arange(len(rows))
            is_there, is_same = counts[at] > lane, (counts[at] == then[at]) & (then[at] > lane)
            yield Lane(
                at,
                _at(numbers, firsts_then[at] + lane, is_same),
                _at(now_numbers, firsts[at] + lane, is_there),
            )

    def _cells(self, solution: Solution) -> tuple[tuple[bool, str, str], ...]:
        """Return what orders a key's solutions: first the terms that are no numbers."""
        terms = ((name, solution[name]) for name in self._names if name in solution)
        return tuple(
            sorted((number_of(term) == number_of(term), name, term) for name, term in terms)
        )

    def _forget(self, rows: IntArray) -> None:
        super()._forget(rows)
        self.changes.note(rows, self.held)
        self._means.clear()
        self._sizes.clear()


def _at(numbers: Numbers, at: IntArray, is_there: BoolArray) -> Numbers:
    """Return numbers at some positions, NaN where there is none; for each name new columns."""
    found = {}
    for name, each in numbers.items():
        found[name] = np.full(len(at), np.nan)
        found[name][is_there] = each[at[is_there]]
    return found
