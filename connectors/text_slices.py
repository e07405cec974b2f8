"""Slices of texts, each at its own positions, without a Python object per text."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Positions = npt.NDArray[np.int64]


class TextSlices:
    """The bytes of a column of texts without nulls, and the start and end of each text in them.

    >>> slices = TextSlices(pa.array(["one two", "three"]))
    >>> slices.between(slices.starts + 1, slices.ends - 1)
    <pyarrow.lib.StringArray object at ...>
    [
      "ne tw",
      "hre"
    ]
    """

    def __init__(self, texts: pa.StringArray) -> None:
        _, offsets, data = texts.buffers()
        edges = (
            np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1]
            if len(texts)
            else [0]
        )
        self._edges: Positions = np.asarray(edges, np.int64)
        self._buffer = data if data is not None else pa.py_buffer(b"")

    @property
    def starts(self) -> Positions:
        """The start of each text."""
        return self._edges[:-1]

    @property
    def ends(self) -> Positions:
        """The end of each text."""
        return self._edges[1:]

    def places_of(self, character: str) -> Positions:
        """Return the positions of an ASCII character in the texts in order, then the texts' end."""
        low, high = int(self._edges[0]), int(self._edges[-1])
        found = (
            np.flatnonzero(np.frombuffer(self._buffer, np.uint8)[low:high] == ord(character)) + low
        )
        return np.append(found, high)

    def bytes_at(self, starts: Positions, length: int) -> npt.NDArray[np.uint8]:
        """Return ``length`` bytes from each position on, a row per position."""
        found: npt.NDArray[np.uint8] = np.frombuffer(self._buffer, np.uint8)[
            starts[:, None] + np.arange(length)
        ]
        return found

    def between(self, starts: Positions, ends: Positions) -> pa.StringArray:
        """Return one piece of each text; pieces must neither overlap nor cut a character in two."""
        # One array of piece, gap, piece, … over the same bytes; every second value is a piece.
        edges = np.empty(2 * len(starts) + 1, dtype=np.int32)
        edges[0:-1:2], edges[1::2] = starts, ends
        edges[-1] = ends[-1] if len(ends) else 0
        pieces = pa.StringArray.from_buffers(len(edges) - 1, pa.py_buffer(edges), self._buffer)
        return pieces.take(pa.array(np.arange(0, len(pieces), 2)))
