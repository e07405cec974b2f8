"""Cache of a replica's lookups while one window is answered: queries share the lookups of keys."""

from __future__ import annotations

import numpy as np

from replica.number_size import NumberSize
from replica.store.contract import BoolArray, FloatArray, IntArray
from replica.store.joined_store import JoinedStore
from replica.store.runs import Runs


class LookupCache:
    """Store of a replica with a cache of its keys' rows, valid until :meth:`renew` is called.

    Memory is O(keys looked up since).
    """

    def __init__(self, store: JoinedStore) -> None:
        self._store = store
        self._rows: dict[str, int] = {}

    def renew(self) -> None:
        """Clear the cache: the store may have changed."""
        self._rows.clear()

    def rows(self, keys: list[str]) -> IntArray:
        """Return each key's row; -1 for an unknown key."""
        new = [key for key in keys if key not in self._rows]
        if new:
            self._rows.update(zip(new, self._store.rows(new).tolist(), strict=True))
        return np.fromiter(map(self._rows.__getitem__, keys), dtype=np.int64, count=len(keys))

    def all_rows(self) -> IntArray:
        """Return the rows of all keys."""
        return self._store.all_rows()

    def runs(self, rows: IntArray, *, least: int = 0) -> Runs | None:
        """Return the places of some rows; None if each row is its own place."""
        return self._store.runs(rows, least=least)

    def numbers(self, variable: str, places: IntArray) -> FloatArray:
        """Return a variable's values as numbers; NaN if there is none."""
        return self._store.numbers(variable, places)

    def floating(self, variable: str, places: IntArray) -> BoolArray:
        """Return a mask of the places at which a variable is an xsd:float or xsd:double."""
        return self._store.floating(variable, places)

    def size(self, variable: str) -> NumberSize:
        """Return the size of a variable's numbers."""
        return self._store.size(variable)

    def present(self, rows: IntArray) -> BoolArray:
        """Return a mask of the rows whose key the remote had when it was last asked."""
        return self._store.present(rows)

    def fetched_at(self, rows: IntArray) -> FloatArray:
        """Return the time at which each row was last fetched."""
        return self._store.fetched_at(rows)

    def terms(self, variable: str, places: IntArray) -> list[str | None]:
        """Return the N-Triples terms of some places' values; None if there is none."""
        return self._store.terms(variable, places)

    @property
    def variables(self) -> tuple[str, ...]:
        """Variables that the remote binds."""
        return self._store.variables
