"""Hashes of identities by whole columns: equal in all processes, unpredictable from outside."""

from __future__ import annotations

import hashlib
import operator
import secrets
import struct
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.topk.contract import IntArray

Words = npt.NDArray[np.uint64]
Hashes = tuple[IntArray, IntArray]
"""Heads and tails of a column's hashes."""

_LONG = 256
"""Length in bytes above which texts are hashed one by one."""
_FEW = 16
"""Number of texts up to which hashing one by one is faster than by columns."""
_BLOCK = 4096
"""Number of texts hashed at once: so many fit into a processor's cache."""
_WORD = 8
_LANE = 128
_HALF, _LOW = np.uint64(32), np.uint64(0xFFFFFFFF)
_MASKS = np.array([(1 << 8 * count) - 1 for count in range(_WORD + 1)], np.uint64)
"""Masks that keep 0 to 8 bytes of a word."""


class IdentityHash:
    """Hashes of 128 bits, in two columns, which depend on a secret seed and the text alone.

    A hash is four times 32 bits. Each part is taken from a sum of the text's 32-bit words and its
    length, each multiplied by a random number of 64 bits (multilinear hashing). Two different texts
    that were chosen without knowing the seed have the same hash with a probability of 2⁻¹²⁸. Texts
    of more than 256 bytes use keyed BLAKE2b. O(bytes).

    >>> seed = bytes(16)
    >>> heads, tails = IdentityHash(seed).of(["a", "b", "a"])
    >>> np.unique(heads, return_inverse=True)[1].tolist() in ([0, 1, 0], [1, 0, 1])
    True
    """

    def __init__(self, seed: bytes | None = None) -> None:
        self.seed = secrets.token_bytes(16) if seed is None else seed

    def __reduce__(self) -> tuple[type[IdentityHash], tuple[bytes]]:
        """Return the pickled form: the seed alone."""
        return IdentityHash, (self.seed,)

    def of(self, texts: list[str] | pa.Array | pa.ChunkedArray) -> Hashes:
        """Return the heads and tails of a column of text."""
        if isinstance(texts, list) and len(texts) <= _FEW:
            return self._of_few(texts)
        column = pa.array(texts, pa.string()) if isinstance(texts, list) else texts
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        found = [self._of(chunk.cast(pa.large_binary())) for chunk in chunks]
        nothing = np.empty(0, np.int64)
        heads, tails = zip(*found, strict=True) if found else ((nothing,), (nothing,))
        return np.concatenate(heads), np.concatenate(tails)

    def _of(self, texts: pa.LargeBinaryArray) -> Hashes:
        heads, tails = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
        if len(texts):
            _, offsets, data = texts.buffers()
            bounds = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
            bytes_ = np.zeros(int(bounds[-1] - bounds[0]) + _WORD, np.uint8)
            bytes_[:-_WORD] = np.frombuffer(data or b"", np.uint8)[bounds[0] : bounds[-1]]
            # One word for the eight bytes from each byte on; nothing is copied.
            words = np.ndarray(len(bytes_) - _WORD + 1, "<u8", bytes_, strides=(1,))
            starts, lengths = bounds[:-1] - bounds[0], np.diff(bounds)
            begin = _common_begin(texts)
            for start in range(0, len(texts), _BLOCK):
                block = slice(start, start + _BLOCK)
                heads[block], tails[block] = self._of_block(
                    words, starts[block], lengths[block], begin
                )
            for at in np.flatnonzero(lengths > _LONG).tolist():
                heads[at], tails[at] = self._of_long(texts[at].as_py())
        return heads.view(np.int64), tails.view(np.int64)

    def _of_block(
        self, words: Words, starts: IntArray, lengths: IntArray, begin: bytes
    ) -> tuple[Words, Words]:
        lengths = np.where(lengths > _LONG, 0, lengths)
        own, *others = self._factors
        sums = lengths.astype(np.uint64) * own[:, None] + self._sums_of(begin)
        product = np.empty_like(sums)
        for done in range(len(begin), int(lengths.max()), _WORD):
            word = words[np.minimum(starts + done, len(words) - 1)]
            # Bytes behind a text's end belong to another text: mask them out.
            word &= _MASKS[np.clip(lengths - done, 0, _WORD)]
            low, high = others[done // 4 : done // 4 + 2]
            sums += np.multiply(word & _LOW, low[:, None], out=product)
            sums += np.multiply(word >> _HALF, high[:, None], out=product)
        first, second, third, fourth = sums >> _HALF
        return first << _HALF | second, third << _HALF | fourth

    def _sums_of(self, begin: bytes) -> Words:
        """Return what the words of a beginning add to the sums of texts that begin so."""
        halves = np.frombuffer(begin, "<u4").astype(np.uint64)
        return (halves @ self._factors[1 : 1 + len(halves)])[:, None]

    def _of_few(self, texts: list[str]) -> Hashes:
        each = [self._of_one(text.encode()) for text in texts]
        columns = np.array(each, np.uint64).reshape(-1, 2).T.copy().view(np.int64)
        return columns[0], columns[1]

    def _of_one(self, text: bytes) -> tuple[int, int]:
        """Return the hash of :meth:`_of_block`, by one Python integer with a lane per sum."""
        if len(text) > _LONG:
            return self._of_long(text)
        own, *others = self._lanes
        words = struct.unpack(f"<{-(-len(text) // 4)}I", text + bytes(-len(text) % 4))
        total = len(text) * own + sum(map(operator.mul, words, others))
        first, second, third, fourth = (
            total >> _LANE * lane + 32 & 0xFFFFFFFF for lane in range(4)
        )
        return first << 32 | second, third << 32 | fourth

    def _of_long(self, text: bytes) -> tuple[int, int]:
        digest = hashlib.blake2b(text, key=self.seed, digest_size=16).digest()
        return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")

    @cached_property
    def _factors(self) -> Words:
        """Random factors: four for the length, then four for each word."""
        rows = 1 + 2 * (_LONG // _WORD)
        drawn = hashlib.shake_256(self.seed).digest(rows * 4 * _WORD)
        return np.frombuffer(drawn, "<u8").astype(np.uint64).reshape(rows, 4)

    @cached_property
    def _lanes(self) -> list[int]:
        """Rows of factors as one integer each, in lanes so wide that their sums do not overlap."""
        rows: list[list[int]] = self._factors.tolist()
        return [sum(factor << _LANE * lane for lane, factor in enumerate(row)) for row in rows]


def _common_begin(texts: pa.LargeBinaryArray) -> bytes:
    """Return the whole words with which all texts begin, as IRIs do; none if one is long.

    >>> texts = ["urn:key:one", "urn:key:two"]
    >>> _common_begin(pa.array(texts, pa.large_binary()))
    b'urn:key:'
    """
    first, last = (texts[at].as_py() or b"" for at in (0, -1))
    until = _WORD
    while until <= len(first) and first[:until] == last[:until]:
        until += _WORD
    begin = first[: until - _WORD]
    if not begin or pc.max(pc.binary_length(texts)).as_py() > _LONG:
        return b""
    return begin if pc.all(pc.fill_null(pc.starts_with(texts, begin), False)).as_py() else b""
