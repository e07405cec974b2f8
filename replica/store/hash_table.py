"""Open-addressing hash table of rows, in one array, operating on whole batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from replica.store.contract import BoolArray, IntArray

Tags = npt.NDArray[np.uint64]
"""Hashes of 32 bits, stored in 64."""

_BITS = np.uint64(32)
_ROW = np.uint64(0xFFFFFFFF)
_EMPTY = np.uint64(0)
_GONE = np.uint64(1 << 32)
"""Deleted entry, without a row: searches continue here, insertions may reuse it."""
_FEW = 32
"""Number of searches below which single steps are faster than arrays."""
_FULL = 0.8
"""Load, deleted entries included, at which the table is rebuilt."""


class HashTable:
    """Rows by 32-bit hashes of their keys. The caller compares keys with equal hashes.

    An entry holds the hash and the row, so a search touches one array only. An entry lies at ``hash
    * size >> 32`` or in the first free slot after it. This keeps the hashes' order: a sorted array
    of entries is nearly a table already, and building one costs a sort. With room for n rows a
    table takes 12 n bytes. Searching, putting and removing take O(1) per row on average.

    >>> table = HashTable(room=8)
    >>> table.put(np.array([5, 6], np.uint64), np.array([0, 1]))
    >>> table.find(np.array([6, 7], np.uint64), lambda at, rows: np.ones(len(at), bool)).tolist()
    [1, -1]
    """

    def __init__(self, room: int = 0) -> None:
        self._entries = _empty_table(room)
        self._taken = 0
        """Number of entries in use, deleted ones included."""

    @property
    def nbytes(self) -> int:
        """Size of the table in bytes."""
        return self._entries.nbytes

    def make_room(self, room: int) -> None:
        """Rebuild the table for this many rows."""
        entries = self._entries[self._entries & _ROW != 0]
        entries.sort()
        self._entries = _empty_table(room)
        # In the order of their hashes each entry lands in its home slot, or right after the one
        # before it.
        order = np.arange(len(entries))
        slots = np.maximum.accumulate(self._homes(entries >> _BITS) - order) + order
        within = int(np.searchsorted(slots, len(self._entries)))
        self._entries[slots[:within]] = entries[:within]
        self._taken = within
        self._insert(entries[within:])

    def find(self, tags: Tags, is_same: Callable[[IntArray, IntArray], BoolArray]) -> IntArray:
        """Return the row of each hash, -1 if there is none.

        ``is_same(positions, rows)`` compares the keys at positions of the batch with those of rows
        that have the same hash.
        """
        found = np.full(len(tags), -1, np.int64)
        waiting, slots = np.arange(len(tags)), self._homes(tags)
        while len(waiting):
            if len(waiting) <= _FEW:
                slots = self._ahead(tags[waiting], slots)
            entries = self._entries[slots]
            done = entries == _EMPTY
            alike = np.flatnonzero((entries >> _BITS == tags[waiting]) & (entries & _ROW != 0))
            if len(alike):
                rows = _rows_of(entries[alike])
                same = is_same(waiting[alike], rows)
                found[waiting[alike[same]]] = rows[same]
                done[alike[same]] = True
            left = np.flatnonzero(~done)
            waiting, slots = waiting[left], self._next(slots[left])
        return found

    def rows_at(self, tag: int) -> Iterator[int]:
        """Yield the rows with a hash; faster than arrays for a few keys."""
        entries, size = self._entries, len(self._entries)
        slot = tag * size >> 32
        while entry := entries.item(slot):
            if entry >> 32 == tag and entry & 0xFFFFFFFF:
                yield (entry & 0xFFFFFFFF) - 1
            slot = slot + 1 if slot + 1 < size else 0

    def put(self, tags: Tags, rows: IntArray) -> None:
        """Insert rows that are not in the table."""
        self._make_room_again(len(rows))
        self._insert(_entries_of(tags, rows))

    def remove(self, tags: Tags, rows: IntArray) -> None:
        """Remove rows with their hashes; raises KeyError if they are not in the table."""
        sought, slots = _entries_of(tags, rows), self._homes(tags)
        while len(sought):
            entries = self._entries[slots]
            if (entries == _EMPTY).any():
                raise KeyError("rows that are not in the table")
            here = entries == sought
            self._entries[slots[here]] = _GONE
            sought, slots = sought[~here], self._next(slots[~here])

    def _ahead(self, tags: Tags, slots: IntArray) -> IntArray:
        """Return, for each hash, the next slot that is empty or holds the same hash."""
        entries, size = self._entries, len(self._entries)
        ahead = []
        for tag, slot in zip(tags.tolist(), slots.tolist(), strict=True):
            while (entry := entries.item(slot)) and entry >> 32 != tag:
                slot = slot + 1 if slot + 1 < size else 0
            ahead.append(slot)
        return np.array(ahead, np.int64)

    def _make_room_again(self, count: int) -> None:
        if self._taken + count > _FULL * len(self._entries):
            # Same size: deleted entries disappear, and the owner bounds the number of rows.
            self.make_room(2 * len(self._entries) // 3)

    def _insert(self, entries: Tags) -> None:
        slots = self._homes(entries >> _BITS)
        while len(entries):
            there = self._entries[slots]
            free = np.flatnonzero(there & _ROW == 0)
            self._entries[slots[free]] = entries[free]
            # If several entries want the same slot, one has got it.
            placed = free[self._entries[slots[free]] == entries[free]]
            self._taken += int(np.count_nonzero(there[placed] == _EMPTY))
            left = np.ones(len(entries), bool)
            left[placed] = False
            entries, slots = entries[left], self._next(slots[left])

    def _homes(self, tags: Tags) -> IntArray:
        return (tags * np.uint64(len(self._entries)) >> _BITS).astype(np.int64)

    def _next(self, slots: IntArray) -> IntArray:
        following = slots + 1
        following[following == len(self._entries)] = 0
        return following


def _empty_table(room: int) -> Tags:
    return np.zeros(max(12, room + room // 2 + 1), np.uint64)


def _entries_of(tags: Tags, rows: IntArray) -> Tags:
    return tags << _BITS | (rows + 1).astype(np.uint64)


def _rows_of(entries: Tags) -> IntArray:
    return (entries & _ROW).astype(np.int64) - 1
