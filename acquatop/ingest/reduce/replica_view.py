"""View of a replica's present values, as columns here and as changes that are sent elsewhere."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.held_hashes import HeldHashes
from acquatop.ingest.held_places import HeldPlaces
from acquatop.ingest.identity_hash import Hashes, IdentityHash
from acquatop.ingest.reduce.published import Published, SentChanges
from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from replica.number_size import NumberSize
from replica.store.joined_store import JoinedStore
from replica.store.runs import Runs


class _Copy:
    """Copy of a replica's values where the replica is, as executors have theirs; made on demand."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version: int | None = None
        self._held: HeldReplica | None = None

    def caught_up(self, view: ReplicaView) -> HeldReplica:
        """Return the copy with a view's values. O(what has changed since the last call)."""
        with self._lock:
            changes = view.changes(self._version)
            if changes is not None:
                self._held, self._version = changes.change.apply(self._held), changes.version
            assert self._held is not None, "the first change is the whole"
            return self._held


class ReplicaView(Published):
    """Keys that the remote has, and their numbers.

    Views of one store for the same variables are one value to executors, which are sent the rows
    that have changed. A view made of the one ``before`` takes its copy of the values over.
    """

    def __init__(
        self,
        store: JoinedStore,
        variables: tuple[str, ...],
        typed: tuple[str, ...] = (),
        before: ReplicaView | None = None,
    ) -> None:
        self.name = repr((store.token.hex(), variables, typed))
        self._store = store
        self._variables = variables
        self._typed = typed
        self._version = store.changes.version
        is_next = before is not None and before.name == self.name
        self._copy: _Copy = before._copy if before is not None and is_next else _Copy()

    @property
    def _here(self) -> HeldReplica:
        return self._copy.caught_up(self)

    def _values(
        self, rows: IntArray
    ) -> tuple[dict[str, FloatArray], dict[str, BoolArray], IntArray | None]:
        """Return rows' numbers, their types, and how many each row has, unless each has one."""
        runs = self._store.runs(rows)
        places = rows if runs is None else runs.places
        return (
            {name: self._store.numbers(name, places) for name in self._variables},
            {name: self._store.floating(name, places) for name in self._typed},
            None if runs is None else runs.counts,
        )

    def _sizes(self) -> dict[str, NumberSize]:
        return {name: self._store.size(name) for name in self._variables}

    def rows(self, keys: list[str] | pa.StringArray) -> IntArray:
        """Return each key's row, -1 for a key that the remote has not. O(keys asked)."""
        return self._here.rows(keys)

    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers."""
        return self._here.size(variable)

    def runs(self, rows: IntArray, *, least: int = 0) -> Runs | None:
        """Return the places of some rows; None if each row is its own place."""
        return self._here.runs(rows, least=least)

    def numbers(self, variable: str, places: IntArray) -> FloatArray:
        """Return a variable's values as numbers; NaN if there is none."""
        return self._here.numbers(variable, places)

    def floating(self, variable: str, places: IntArray) -> BoolArray:
        """Return a mask of the places at which a variable is an xsd:float or xsd:double."""
        return self._here.floating(variable, places)

    def present(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows that the remote has."""
        return rows >= 0

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's values; NaN if there is none."""
        return self._here.mean(variable)

    def changes(self, since: int | None) -> SentChanges | None:
        """Return the rows that have changed since a version. O(these), or O(keys) for the whole."""
        store, log = self._store, self._store.changes
        if since == self._version:
            return None
        if since is None:
            # What has changed since this view was made is sent once more with the next one.
            log.begin()
        rows = None if since is None else log.since(since)
        is_whole = rows is None
        rows = store.all_rows() if rows is None else rows
        there = rows[store.are_held(rows)]
        there = there[store.present(there)]
        hashes = IdentityHash(store.token).of(store.keys(there))
        gone = np.setdiff1d(rows, there, assume_unique=True)
        numbers, types, counts = self._values(there)
        change = ChangedRows(
            store.token, gone, there, hashes, numbers, types, self._sizes(), is_whole, counts
        )
        return SentChanges(change, self._version, is_whole)


@dataclass(frozen=True)
class ChangedRows:
    """Rows of a replica that have changed: those gone, and the others with their values.

    ``sizes`` are those of the whole replica's numbers. ``counts`` says how many values each row
    has; None if each row has one, at its own place.
    """

    seed: bytes
    gone: IntArray
    rows: IntArray
    hashes: Hashes
    numbers: dict[str, FloatArray]
    types: dict[str, BoolArray]
    sizes: dict[str, NumberSize]
    is_whole: bool
    counts: IntArray | None = None

    def apply(self, kept: HeldReplica | None) -> HeldReplica:
        """Change the rows in what is kept."""
        held = HeldReplica(self.seed) if self.is_whole or kept is None else kept
        held.change(self)
        return held


class HeldReplica:
    """Keys that the remote has, and their numbers, as executors hold them; indexed once.

    Looking up n keys takes O(n), whatever the number of keys held.
    """

    def __init__(self, seed: bytes) -> None:
        self._hashes = IdentityHash(seed)
        self._index = HeldHashes()
        self._places: HeldPlaces | None = None
        self._numbers: dict[str, FloatArray] = {}
        self._types: dict[str, BoolArray] = {}
        self._sizes: dict[str, NumberSize] = {}

    def change(self, changed: ChangedRows) -> None:
        """Change some rows."""
        self._index.remove(changed.gone)
        self._index.put(changed.rows, changed.hashes)
        places = self._placed(changed)
        room = self._index.room if self._places is None else self._places.room
        for name, numbers in changed.numbers.items():
            before = self._numbers.get(name, np.empty(0))
            column = self._numbers[name] = _grown(before, room, np.nan)
            column[places] = numbers
        for name, types in changed.types.items():
            of_type = self._types.get(name, np.empty(0, dtype=np.bool_))
            mask = self._types[name] = _grown(of_type, room, False)
            mask[places] = types
        self._sizes = changed.sizes

    def _placed(self, changed: ChangedRows) -> IntArray:
        """Return the places of changed rows' values, in which those of others are not touched."""
        if changed.counts is None:
            return changed.rows
        if self._places is None:
            self._places = HeldPlaces()
        self._places.release(changed.gone)
        kept = self._places.put(changed.rows, changed.counts, self._index.room)
        if kept is not None:
            self._numbers = {name: each[kept] for name, each in self._numbers.items()}
            self._types = {name: each[kept] for name, each in self._types.items()}
        return self._places.runs(changed.rows).places

    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers."""
        return self._sizes[variable]

    def rows(self, keys: list[str] | pa.StringArray) -> IntArray:
        """Return each key's row, -1 for a key that the remote has not. O(keys asked)."""
        return self._index.find(self._hashes.of(keys))

    def runs(self, rows: IntArray, *, least: int = 0) -> Runs | None:
        """Return the places of some rows; None if each row is its own place."""
        return None if self._places is None else self._places.runs(rows, least=least)

    def numbers(self, variable: str, places: IntArray) -> FloatArray:
        """Return a variable's values as numbers; NaN if there is none."""
        column = self._numbers.get(variable, np.empty(0))
        if not len(column):
            return np.full(len(places), np.nan)
        return np.where(places >= 0, column[places], np.nan)

    def floating(self, variable: str, places: IntArray) -> BoolArray:
        """Return a mask of the places at which a variable is an xsd:float or xsd:double."""
        column = self._types.get(variable, np.empty(0, dtype=np.bool_))
        if not len(column):
            return np.zeros(len(places), dtype=np.bool_)
        mask: BoolArray = (places >= 0) & column[places]
        return mask

    def present(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows that the remote has."""
        return rows >= 0

    def mean(self, variable: str) -> float:
        """Return the mean of a variable's values; NaN if there is none."""
        used = self._index.used()
        runs = self.runs(used)
        return mean_of(self._numbers[variable][used if runs is None else runs.places])


def mean_of(values: FloatArray) -> float:
    """Return the mean of the values that are there; NaN if there is none."""
    return float(np.nanmean(values)) if bool((~np.isnan(values)).any()) else np.nan


def _grown(column: AnyArray, room: int, empty: float | bool) -> AnyArray:
    more = np.full(max(0, room - len(column)), empty, dtype=column.dtype)
    return np.concatenate([column, more]) if len(more) else column
