"""Texts by row, as UTF-8 in one array of bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replica.store.columns import AnyArray, positions_of
from replica.store.contract import BoolArray, IntArray

Bytes = npt.NDArray[np.uint8]

_WORD = 8
_CHUNK = 1 << 14
"""Texts copied at once: the positions of their bytes take eight times as much memory."""
_GONE = -1


@dataclass(frozen=True)
class Texts:
    """A batch of texts as UTF-8, with the start and length of each."""

    data: Bytes
    starts: IntArray
    lengths: IntArray

    @classmethod
    def of(cls, texts: Sequence[str]) -> Texts:
        """Return a batch of texts, of any characters."""
        joined = "".join(texts)
        data = encoded(joined)
        each: Sequence[str] | list[bytes] = (
            texts if len(data) == len(joined) else [encoded(text) for text in texts]
        )
        lengths = np.fromiter(map(len, each), np.int64, len(texts))
        return cls(np.frombuffer(data, np.uint8), np.cumsum(lengths) - lengths, lengths)


class TextArena:
    """Texts by row. A text takes its bytes and 12 more; removed texts take at most a quarter.

    Texts are compared eight bytes at a time, whole batches at once.

    >>> arena = TextArena()
    >>> arena.make_room(2)
    >>> arena.put(np.array([0, 1]), Texts.of(["ann", "bö"]))
    >>> arena.texts(np.array([1, 0]))
    ['bö', 'ann']
    """

    def __init__(self) -> None:
        # A few spare bytes at the end, as whole words are read.
        self._bytes: Bytes = np.zeros(_WORD, np.uint8)
        self._starts = np.zeros(0, np.int64)
        self._lengths = np.zeros(0, np.int32)
        self._used = 0
        self._live = 0

    @property
    def nbytes(self) -> int:
        """Size in bytes of the texts and their positions."""
        return self._bytes.nbytes + self._starts.nbytes + self._lengths.nbytes

    @property
    def text_bytes(self) -> int:
        """Size of the texts themselves in bytes."""
        return self._live

    def make_room(self, capacity: int) -> None:
        """Make room for rows up to a number."""
        self._starts = _resized(self._starts, capacity, 0)
        self._lengths = _resized(self._lengths, capacity, _GONE)

    def has(self, rows: slice | IntArray) -> BoolArray:
        """Return True for each row that has a text."""
        return np.asarray(self._lengths[rows] != _GONE)

    def put(self, rows: IntArray, texts: Texts) -> None:
        """Set the texts of rows that have none."""
        count = len(texts.data)
        if self._used + count > len(self._bytes) - _WORD:
            self._widen(count)
        self._bytes[self._used : self._used + count] = texts.data
        self._starts[rows] = self._used + texts.starts
        self._lengths[rows] = texts.lengths
        self._used += count
        self._live += count

    def remove(self, rows: IntArray) -> None:
        """Remove the texts of rows that have one."""
        self._live -= int(self._lengths[rows].sum())
        self._lengths[rows] = _GONE
        if self._used - self._live > max(1024, self._used // 4):
            self._compact(0)

    def bytes_at(self, row: int) -> bytes:
        """Return the bytes of one row's text."""
        start = self._starts.item(row)
        return self._bytes[start : start + self._lengths.item(row)].tobytes()

    def texts(self, rows: IntArray) -> list[str]:
        """Return the texts of some rows."""
        view = self._bytes.data
        starts = self._starts[rows]
        bounds = zip(starts.tolist(), (starts + self._lengths[rows]).tolist(), strict=True)
        return [decoded(view[start:stop]) for start, stop in bounds]

    def is_same(self, rows: IntArray, texts: Texts, at: IntArray) -> BoolArray:
        """Return True for each row whose text equals the one at a place of a batch. O(bytes)."""
        lengths = texts.lengths[at]
        same = np.asarray(self._lengths[rows] == lengths)
        left = np.flatnonzero(same & (lengths > 0))
        mine, theirs = (
            _words(self._bytes),
            _words(np.concatenate([texts.data, np.zeros(_WORD, np.uint8)])),
        )
        places, others, remaining = self._starts[rows[left]], texts.starts[at[left]], lengths[left]
        while len(left):
            excess = np.maximum(0, 8 * (_WORD - remaining)).astype(np.uint64)
            # Little-endian: the high bits are what follows the text.
            equal = (mine[places] ^ theirs[others]) << excess == 0
            same[left[~equal]] = False
            on = np.flatnonzero(equal & (remaining > _WORD))
            left, places, others, remaining = (
                left[on],
                places[on] + _WORD,
                others[on] + _WORD,
                remaining[on] - _WORD,
            )
        return same

    def gathered(self, rows: IntArray) -> Bytes:
        """Return the texts of some rows, one after the other."""
        return _gathered(self._bytes, self._starts[rows], self._lengths[rows].astype(np.int64))

    def lengths(self, used: int) -> npt.NDArray[np.int32]:
        """Return the lengths in bytes of the first rows' texts, -1 if there is none."""
        return self._lengths[:used]

    def _widen(self, count: int) -> None:
        if self._used - self._live > self._used // 8:
            self._compact(count)
            return
        needed = self._used + count
        wider = np.zeros(max(needed, self._used + self._used // 8, 1024) + _WORD, np.uint8)
        wider[: self._used] = self._bytes[: self._used]
        self._bytes = wider

    def _compact(self, count: int) -> None:
        """Drop removed texts, and make room for more bytes."""
        rows = np.flatnonzero(self._lengths != _GONE)
        lengths = self._lengths[rows].astype(np.int64)
        kept = np.zeros(self._live + max(count, self._live // 8, 1024) + _WORD, np.uint8)
        _gathered(self._bytes, self._starts[rows], lengths, kept)
        self._bytes = kept
        self._starts[rows] = np.cumsum(lengths) - lengths
        self._used = self._live


def encoded(text: str) -> bytes:
    """Return a text's bytes; half a surrogate pair, possible in JSON, is encoded like any other."""
    return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes | memoryview) -> str:
    """Return the text of some bytes."""
    return str(data, "utf-8", "surrogatepass")


def _words(data: Bytes) -> npt.NDArray[np.uint64]:
    """Return the eight bytes from each byte on as one number: a view, without copying."""
    return np.ndarray(len(data) - _WORD + 1, "<u8", data, strides=(1,))


def _gathered(data: Bytes, starts: IntArray, lengths: IntArray, into: Bytes | None = None) -> Bytes:
    gathered = np.empty(int(lengths.sum()), np.uint8) if into is None else into
    done = 0
    for first in range(0, len(starts), _CHUNK):
        chunk = slice(first, first + _CHUNK)
        positions = positions_of(starts[chunk], lengths[chunk])
        gathered[done : done + len(positions)] = data[positions]
        done += len(positions)
    return gathered


def _resized(cells: AnyArray, capacity: int, nothing: int) -> AnyArray:
    wider = np.full(capacity, nothing, cells.dtype)
    wider[: len(cells)] = cells
    return wider
