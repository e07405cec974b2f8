"""Log of changed rows, for those who hold a copy of a store elsewhere."""

from __future__ import annotations

import numpy as np

from replica.store.contract import IntArray

LEAST = 1024
"""Number of rows up to which a log is kept, however few keys are held."""


class RowChanges:
    """Rows that have changed since a version. Nothing is noted until somebody asks.

    Memory is O(rows): a log that has grown longer than the store is given up, and copies have to be
    made anew.

    >>> log = RowChanges()
    >>> start = log.begin()
    >>> log.note(np.array([3, 1]), held=9)
    >>> log.note(np.array([3]), held=9)
    >>> log.since(start).tolist(), log.since(log.version).tolist()
    ([1, 3], [])
    """

    def __init__(self) -> None:
        self.version = 0
        """Number that grows with every change."""
        self._first: int | None = None
        self._entries: list[IntArray] = []
        self._size = 0

    def begin(self) -> int:
        """Note changes from now on, if they are not noted yet; return the present version."""
        if self._first is None:
            self._first = self.version
        return self.version

    def note(self, rows: IntArray, held: int) -> None:
        """Note that some rows of a store, which holds so many keys, have changed."""
        if not len(rows):
            return
        self.version += 1
        if self._first is None:
            return
        self._entries.append(rows)
        self._size += len(rows)
        if self._size > max(held, LEAST):
            self._give_up()

    def note_all(self) -> None:
        """Note that any row may have changed."""
        self.version += 1
        self._give_up()

    def since(self, version: int) -> IntArray | None:
        """Return the rows that have changed since a version, ascending; None if it is too old."""
        if self._first is None or version < self._first:
            return None
        entries = self._entries[version - self._first :]
        return np.unique(np.concatenate([np.empty(0, dtype=np.int64), *entries]))

    def _give_up(self) -> None:
        if self._first is not None:
            self._first, self._entries, self._size = self.version, [], 0
