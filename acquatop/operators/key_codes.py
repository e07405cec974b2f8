"""Numbers for keys, small ones, and the same for as long as a key is there."""

from __future__ import annotations

from typing import Self

import numpy as np

from acquatop.topk.contract import AnyArray, IntArray
from acquatop.topk.snapshot import State, pack, reading, unpack

_KIND, _VERSION = "key codes", 1


class KeyCodes:
    """A dictionary of texts whose numbers are used again.

    Memory is O(the most keys that are held at once): numbers are given from zero, those that were
    let go first.

    >>> codes = KeyCodes()
    >>> codes.encode(["b", "a", "b"]).tolist()
    [0, 1, 0]
    >>> codes.release(np.array([0]))
    >>> codes.encode(["c", "a"]).tolist(), codes.texts(np.array([1, 0])).tolist()
    ([0, 1], ['a', 'c'])
    """

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._texts: AnyArray = np.empty(0, dtype=object)
        self._free: list[int] = []
        self._next = 0

    def __len__(self) -> int:
        """Return how many keys have a number."""
        return len(self._codes)

    @property
    def size(self) -> int:
        """A number that all numbers are below."""
        return len(self._texts)

    def encode(self, texts: list[str]) -> IntArray:
        """Return keys' numbers; new keys are given one. O(n)."""
        found = self._codes.get
        codes = [found(text, -1) for text in texts]
        for at in [at for at, code in enumerate(codes) if code < 0]:
            codes[at] = self._add(texts[at])
        return np.array(codes, dtype=np.int64)

    def find(self, texts: list[str]) -> IntArray:
        """Return the numbers of those keys that have one. O(n)."""
        return np.array([self._codes[text] for text in texts if text in self._codes], dtype=np.int64)

    def texts(self, codes: IntArray) -> AnyArray:
        """Return the keys that numbers stand for."""
        return self._texts[codes]

    def used(self) -> IntArray:
        """Return all numbers that stand for a key. O(n)."""
        return np.fromiter(self._codes.values(), dtype=np.int64, count=len(self._codes))

    def release(self, codes: IntArray) -> None:
        """Let go of some keys; their numbers will stand for others. O(n)."""
        for code, text in zip(codes.tolist(), self._texts[codes].tolist(), strict=True):
            del self._codes[text]
            self._texts[code] = None
            self._free.append(code)

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here."""
        codes = self.used()
        settings = {"size": self.size, "next": self._next}
        tables = {
            "keys": {"texts": self._texts[codes], "codes": codes},
            "free": {"codes": np.array(self._free, np.int64)},
        }
        return pack(_KIND, _VERSION, State(settings, tables))

    @classmethod
    def restore(cls, snapshot: bytes) -> Self:
        """Return one that goes on from a snapshot; raises ``SnapshotError`` for any other bytes."""
        state = unpack(_KIND, _VERSION, snapshot)
        restored = cls()
        with reading():
            texts, codes = state.tables["keys"]["texts"], state.tables["keys"]["codes"]
            restored._texts = np.full(state.settings["size"], None, dtype=object)
            restored._texts[codes] = texts
            restored._codes = dict(zip(texts.tolist(), codes.tolist(), strict=True))
            restored._free = state.tables["free"]["codes"].tolist()
            restored._next = state.settings["next"]
        return restored

    def _add(self, text: str) -> int:
        if text in self._codes:  # twice among the new
            return self._codes[text]
        code = self._free.pop() if self._free else self._next
        self._next = max(self._next, code + 1)
        if code >= len(self._texts):
            wider = np.empty(max(64, 2 * len(self._texts)), dtype=object)
            wider[: len(self._texts)] = self._texts
            self._texts = wider
        self._codes[text] = code
        self._texts[code] = text
        return code
