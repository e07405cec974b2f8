"""Hashes by row, and rows by hash: an index of keys without their texts."""

from __future__ import annotations

import numpy as np

from acquatop.ingest.identity_hash import Hashes
from acquatop.ingest.scoring import BoolArray
from acquatop.topk.contract import IntArray
from replica.store.hash_table import HashTable, Tags

_TAG_BITS = np.uint64(32)
_LEAST = 1024


class HeldHashes:
    """Index of hashes that have rows. Finding, putting and removing n takes O(n) on average.

    >>> held = HeldHashes()
    >>> held.put(np.array([7, 2]), (np.array([10, 20]), np.array([30, 40])))
    >>> held.remove(np.array([2, 3]))
    >>> held.find((np.array([20, 10, 10]), np.array([40, 30, 31]))).tolist()
    [-1, 7, -1]
    """

    def __init__(self) -> None:
        self._heads: IntArray = np.empty(0, dtype=np.int64)
        self._tails: IntArray = np.empty(0, dtype=np.int64)
        self._is_used: BoolArray = np.empty(0, dtype=np.bool_)
        self._table = HashTable()

    @property
    def room(self) -> int:
        """Upper bound of the rows, excluded."""
        return len(self._is_used)

    def used(self) -> IntArray:
        """Return the rows that have a hash, ascending. O(room)."""
        return np.flatnonzero(self._is_used)

    def put(self, rows: IntArray, hashes: Hashes) -> None:
        """Give hashes to rows, each given once, in place of those that they have."""
        if not len(rows):
            return
        self._make_room(int(rows.max()) + 1)
        heads, tails = hashes
        same = self._is_used[rows] & (self._heads[rows] == heads) & (self._tails[rows] == tails)
        rows, heads, tails = rows[~same], heads[~same], tails[~same]
        self.remove(rows)
        self._heads[rows], self._tails[rows], self._is_used[rows] = heads, tails, True
        self._table.put(_tags(heads), rows)

    def remove(self, rows: IntArray) -> None:
        """Take the hashes of rows away, if they have any."""
        rows = rows[rows < self.room]
        rows = rows[self._is_used[rows]]
        self._table.remove(_tags(self._heads[rows]), rows)
        self._is_used[rows] = False

    def find(self, hashes: Hashes) -> IntArray:
        """Return the row of each hash; -1 if none has it."""
        heads, tails = hashes

        def is_same(at: IntArray, rows: IntArray) -> BoolArray:
            same: BoolArray = (self._heads[rows] == heads[at]) & (self._tails[rows] == tails[at])
            return same

        return self._table.find(_tags(heads), is_same)

    def _make_room(self, count: int) -> None:
        more = max(_LEAST, 2 * self.room, count) - self.room
        if count <= self.room:
            return
        self._heads = np.concatenate([self._heads, np.zeros(more, np.int64)])
        self._tails = np.concatenate([self._tails, np.zeros(more, np.int64)])
        self._is_used = np.concatenate([self._is_used, np.zeros(more, np.bool_)])
        self._table.make_room(self.room)


def _tags(heads: IntArray) -> Tags:
    return heads.view(np.uint64) >> _TAG_BITS
