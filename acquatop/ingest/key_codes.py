"""Small integer codes for keys; a key keeps its code while it is held."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from acquatop.ingest.identity_hash import Hashes, IdentityHash
from acquatop.ingest.unscored import objects
from acquatop.topk.contract import AnyArray, IntArray
from acquatop.topk.snapshot import State, pack, reading, unpack
from replica.store.hash_table import HashTable, Tags

_KIND, _VERSION = "key codes", 2
_LEAST = 64
_FEW = 16
"""Number of keys up to which lookup one by one is faster than by columns."""
_TAG_BITS = np.uint64(32)


class KeyCodes:
    """Dictionary of texts with codes that are reused.

    Keys are compared by unpredictable hashes of 128 bits (``hashes``). The text of a known key is
    therefore never read, and a sender of keys may send their hashes along.

    Memory is O(the most keys held at once). Codes are given from zero up; released codes are reused
    first.

    >>> codes = KeyCodes()
    >>> codes.encode(["b", "a", "b"]).tolist()
    [0, 1, 0]
    >>> codes.release(np.array([0]))
    >>> codes.encode(["c", "a"]).tolist(), codes.texts(np.array([1, 0])).tolist()
    ([0, 1], ['a', 'c'])
    """

    def __init__(self, hashes: IdentityHash | None = None) -> None:
        self.hashes = hashes or IdentityHash()
        self._table = HashTable()
        self._heads: IntArray = np.empty(0, dtype=np.int64)
        self._tails: IntArray = np.empty(0, dtype=np.int64)
        self._texts: AnyArray = np.empty(0, dtype=object)
        self._is_used: npt.NDArray[np.bool_] = np.empty(0, dtype=np.bool_)
        self._free: IntArray = np.empty(0, dtype=np.int64)
        self._next = 0
        self._added: list[IntArray] | None = []
        self.releases = 0
        """Number of times that keys were released."""

    def __len__(self) -> int:
        """Return the number of keys that have a code."""
        return self._next - len(self._free)

    @property
    def size(self) -> int:
        """Upper bound of all codes, excluded."""
        return len(self._texts)

    def encode(self, texts: list[str] | pa.Array, hashes: Hashes | None = None) -> IntArray:
        """Return the keys' codes; new keys get one. ``hashes`` are the keys' hashes, if known.

        With these, keys that have a code may be null. O(n).
        """
        column = pa.array(texts, pa.string()) if isinstance(texts, list) else texts
        heads, tails = hashes or self.hashes.of(column)
        codes = self._find(heads, tails)
        new = np.flatnonzero(codes < 0)
        if len(new):
            firsts, those = _distinct(heads[new], tails[new])
            at = new[firsts]
            names = column.take(pa.array(at)).cast(pa.string()).to_pylist()
            assert None not in names, "only known keys come without their texts"
            codes[new] = self._add(names, heads[at], tails[at])[those]
        return codes

    def find(self, texts: list[str]) -> IntArray:
        """Return the codes of those keys that have one. O(n)."""
        codes = self._find(*self.hashes.of(texts))
        return codes[codes >= 0]

    def texts(self, codes: IntArray) -> AnyArray:
        """Return the keys of some codes."""
        return self._texts[codes]

    def used(self) -> IntArray:
        """Return all codes in use, ascending. O(n)."""
        return np.flatnonzero(self._is_used)

    @property
    def added(self) -> IntArray:
        """Codes of all keys held, in the order in which they got them since the last release."""
        added = [self.used()] if self._added is None else self._added
        together = np.concatenate([np.empty(0, dtype=np.int64), *added])
        self._added = [together]
        return together

    def hashes_of(self, codes: IntArray) -> Hashes:
        """Return the hashes of some codes' keys."""
        return self._heads[codes], self._tails[codes]

    def release(self, codes: IntArray) -> None:
        """Release some keys, each given once; their codes will be reused. O(n)."""
        self._table.remove(_tags(self._heads[codes]), codes)
        self._texts[codes] = None
        self._is_used[codes] = False
        self._free = np.concatenate([self._free, codes])
        self._added, self.releases = None, self.releases + 1

    def _find(self, heads: IntArray, tails: IntArray) -> IntArray:
        if len(heads) <= _FEW:
            return np.array(list(map(self._code_of, heads.tolist(), tails.tolist())), np.int64)

        def is_same(at: IntArray, codes: IntArray) -> npt.NDArray[np.bool_]:
            same: npt.NDArray[np.bool_] = (self._heads[codes] == heads[at]) & (
                self._tails[codes] == tails[at]
            )
            return same

        return self._table.find(_tags(heads), is_same)

    def _code_of(self, head: int, tail: int) -> int:
        alike = self._table.rows_at(head >> 32 & 0xFFFFFFFF)
        return next(
            (
                code
                for code in alike
                if (self._heads.item(code), self._tails.item(code)) == (head, tail)
            ),
            -1,
        )

    def _add(self, texts: list[str], heads: IntArray, tails: IntArray) -> IntArray:
        """Return the codes given to new keys, each of which occurs once."""
        again = min(len(texts), len(self._free))
        kept = len(self._free) - again
        # Codes released last are reused first.
        reused, self._free = self._free[kept:][::-1], self._free[:kept]
        first, self._next = self._next, self._next + len(texts) - again
        self._make_room(self._next)
        codes = np.concatenate([reused, np.arange(first, self._next)])
        self._put(codes, texts, heads, tails)
        return codes

    def _put(self, codes: IntArray, texts: list[str], heads: IntArray, tails: IntArray) -> None:
        self._texts[codes] = objects(texts)
        self._heads[codes], self._tails[codes] = heads, tails
        self._is_used[codes] = True
        if self._added is not None:
            self._added.append(codes)
        self._table.put(_tags(heads), codes)

    def _make_room(self, count: int) -> None:
        size = self.size
        if count <= size:
            return
        more = max(_LEAST, 2 * size, count) - size
        self._texts = np.concatenate([self._texts, np.full(more, None, dtype=object)])
        self._heads = np.concatenate([self._heads, np.zeros(more, np.int64)])
        self._tails = np.concatenate([self._tails, np.zeros(more, np.int64)])
        self._is_used = np.concatenate([self._is_used, np.zeros(more, np.bool_)])
        self._table.make_room(size + more)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state."""
        codes = self.used()
        settings = {"size": self.size, "next": self._next, "seed": self.hashes.seed.hex()}
        tables = {
            "keys": {"texts": self._texts[codes], "codes": codes},
            "free": {"codes": self._free},
        }
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before any key has a code; raises ``SnapshotError`` if invalid.

        The seed of the hashes becomes that of the snapshot.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            self.hashes = IdentityHash(bytes.fromhex(state.settings["seed"]))
            self._make_room(state.settings["size"])
            texts: list[str] = state.tables["keys"]["texts"].tolist()
            self._put(state.tables["keys"]["codes"], texts, *self.hashes.of(texts))
            self._free = state.tables["free"]["codes"]
            self._next = state.settings["next"]


def _tags(heads: IntArray) -> Tags:
    return heads.view(np.uint64) >> _TAG_BITS


def _distinct(heads: IntArray, tails: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first position of each hash, in order, and for each row the index of its hash.

    >>> [each.tolist() for each in _distinct(np.array([7, 5, 7, 7]), np.array([1, 1, 1, 2]))]
    [[0, 1, 3], [0, 1, 0, 2]]
    """
    _, firsts, those = np.unique(heads, return_index=True, return_inverse=True)
    if (tails[firsts][those] != tails).any():
        _, firsts, those = np.unique(
            np.column_stack([heads, tails]), axis=0, return_index=True, return_inverse=True
        )
    order = np.argsort(firsts)
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    return firsts[order], places[those]
