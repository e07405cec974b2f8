"""Index of keys: each text has a row number of its own while it is held."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from replica.store.columns import AnyArray, room_for
from replica.store.contract import BoolArray, IntArray
from replica.store.hash_table import HashTable, Tags
from replica.store.text_arena import TextArena, Texts, decoded, encoded

_FEW = 64
"""Number of keys up to which finding them one by one is faster than by arrays."""

_ASKED, _RECENT = 1_024, 1 << 14
"""Number of keys up to which those of a call are remembered, and of all that are."""


class KeyIndex:
    """Rows by key and keys by row. A row keeps its key until removal, then it may get another one.

    Keys are found by Python's hash of text, which is salted anew in each process, so nobody can
    choose colliding keys. Texts are always compared as well. Finding, adding and removing n keys
    takes O(n) on average, at times O(held) to make room. A key takes its bytes, and 24 to 30 more;
    the memory does not shrink when keys are removed. Some thousands that were found last are
    remembered with their rows: queries ask for the same ones again and again.

    >>> index = KeyIndex()
    >>> index.add(["<urn:a>", "<urn:b>"]).tolist()
    [0, 1]
    >>> index.find(["<urn:b>", "<urn:c>"]).tolist(), index.keys(np.array([0]))
    ([1, -1], ['<urn:a>'])
    """

    def __init__(self) -> None:
        self.capacity = 0
        self._texts = TextArena()
        self._table = HashTable()
        self._used = 0
        self._free = np.empty(0, np.int32)
        self._recent: dict[str, int] = {}

    def __len__(self) -> int:
        return self._used - len(self._free)

    @property
    def used(self) -> int:
        """Number of rows that have had a key."""
        return self._used

    @property
    def nbytes(self) -> int:
        """Size in bytes, including the keys' texts."""
        return self._texts.nbytes + self._table.nbytes + self._free.nbytes

    @property
    def text_bytes(self) -> int:
        """Size of the keys' texts in bytes."""
        return self._texts.text_bytes

    def find(self, keys: Sequence[str]) -> IntArray:
        """Return each key's row, -1 if it is not held."""
        if len(keys) > _ASKED:
            return self._looked_up(keys)
        recent = self._recent
        rows = np.array([recent.get(key, -1) for key in keys], np.int64)
        missing = np.flatnonzero(rows < 0)
        if len(missing):
            others = [keys[at] for at in missing.tolist()]
            rows[missing] = found = self._looked_up(others)
            if len(recent) + len(others) > _RECENT:
                recent.clear()
            pairs = zip(others, found.tolist(), strict=True)
            recent.update((key, row) for key, row in pairs if row >= 0)
        return rows

    def _looked_up(self, keys: Sequence[str]) -> IntArray:
        if len(keys) <= _FEW:
            return np.array([self._row_of(key) for key in keys], np.int64)
        texts = Texts.of(keys)
        return self._table.find(_tags(keys), lambda at, rows: self._texts.is_same(rows, texts, at))

    def add(self, keys: Sequence[str]) -> IntArray:
        """Return the new rows of keys that are not held yet, each given once."""
        rows = self._free_rows(len(keys))
        self._texts.put(rows, Texts.of(keys))
        self._table.put(_tags(keys), rows)
        return rows

    def remove(self, rows: IntArray) -> None:
        """Remove the keys of some rows, each given once; the rows become free."""
        self._table.remove(_tags(self.keys(rows)), rows)
        self._texts.remove(rows)
        self._free = np.concatenate([self._free, rows.astype(np.int32)])
        self._recent = {}

    def keys(self, rows: IntArray) -> list[str]:
        """Return the keys of rows that are held."""
        return self._texts.texts(rows)

    def are_held(self, rows: IntArray) -> BoolArray:
        """Return True for each row that has a key."""
        return self._texts.has(rows)

    def all_rows(self) -> IntArray:
        """Return the rows of all keys, ascending."""
        return np.flatnonzero(self._texts.has(slice(self._used)))

    def state(self) -> dict[str, AnyArray]:
        """Return the complete state as columns."""
        rows = self.all_rows()
        return {
            "lengths": self._texts.lengths(self._used),
            "texts": self._texts.gathered(rows),
            "free": self._free,
        }

    def resume(self, state: Mapping[str, AnyArray]) -> None:
        """Continue from a state, in a new index; raises ValueError if it is invalid."""
        lengths, free = state["lengths"].astype(np.int64), state["free"].astype(np.int32)
        rows = np.flatnonzero(lengths >= 0)
        gone = np.flatnonzero(lengths == -1)
        if len(rows) + len(gone) < len(lengths) or not np.array_equal(np.sort(free), gone):
            raise ValueError("rows are neither free nor taken")
        self._used, self._free = len(lengths), free
        self._make_room(len(lengths))
        keys = _split(state["texts"].tobytes(), lengths[rows])
        self._texts.put(rows, Texts.of(keys))
        self._table.put(_tags(keys), rows)
        if not np.array_equal(self.find(keys), rows):
            raise ValueError("a key has two rows")

    def _row_of(self, key: str) -> int:
        data = encoded(key)
        candidates = self._table.rows_at(hash(key) & 0xFFFFFFFF)
        return next((row for row in candidates if self._texts.bytes_at(row) == data), -1)

    def _free_rows(self, count: int) -> IntArray:
        reused = min(count, len(self._free))
        again = self._free[len(self._free) - reused :].astype(np.int64)
        self._free = self._free[: len(self._free) - reused]
        first, self._used = self._used, self._used + count - reused
        self._make_room(self._used)
        return np.concatenate([again, np.arange(first, self._used)])

    def _make_room(self, needed: int) -> None:
        capacity = room_for(needed, self.capacity)
        if capacity > self.capacity:
            self.capacity = capacity
            self._texts.make_room(capacity)
            self._table.make_room(capacity)


def _tags(keys: Sequence[str]) -> Tags:
    return np.fromiter(map(hash, keys), np.int64, len(keys)).astype(np.uint64) & np.uint64(
        0xFFFFFFFF
    )


def _split(data: bytes, lengths: IntArray) -> list[str]:
    if int(lengths.sum()) != len(data):
        raise ValueError("the texts are not as long as they should be")
    stops = np.cumsum(lengths)
    pairs = zip((stops - lengths).tolist(), stops.tolist(), strict=True)
    return [decoded(data[start:stop]) for start, stop in pairs]
