"""Splitter from bytes of the stream, as they arrive, to complete lines."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

LONGEST_LINE = 4 << 20
"""Maximum number of bytes kept of a line.

A post with all its additions has well under a hundredth of that.
"""


class LineSplitter:
    r"""Buffer of bytes until a line is complete: pieces may end anywhere, even within a character.

    Lines end with LF or CRLF. Of a line longer than ``longest`` bytes only the first ``longest``
    are kept, which makes it unreadable. Memory: ``longest`` bytes, and a piece.

    >>> buffer = LineSplitter()
    >>> buffer.feed(b'{"a":1}\r\n\r\n{"b"').to_pylist(), buffer.feed(b":2}\n").to_pylist()
    ([b'{"a":1}', b''], [b'{"b":2}'])
    """

    def __init__(self, longest: int = LONGEST_LINE) -> None:
        self._longest = longest
        self._parts: list[bytes] = []
        self._length = 0

    @property
    def rest(self) -> bytes:
        """The received part of the unfinished line."""
        return b"".join(self._parts)

    def feed(self, piece: bytes) -> pa.BinaryArray:
        """Return the lines that a piece completes, without their line breaks."""
        end = piece.rfind(b"\n") + 1
        if not end:
            self._keep(piece)
            return pa.array([], pa.binary())
        first = piece.find(b"\n") + 1
        self._keep(piece[:first])
        lines = self.rest + (b"" if self._length <= self._longest else b"\n") + piece[first:end]
        self._parts, self._length = [], 0
        self._keep(piece[end:])
        return lines_of(lines)

    def _keep(self, piece: bytes) -> None:
        room = max(0, self._longest - self._length)
        if room and piece:
            self._parts.append(piece[:room])
        self._length += len(piece)


def lines_of(data: bytes) -> pa.BinaryArray:
    """Return the lines of bytes that end with a line break, without a Python object per line."""
    characters = np.frombuffer(data, dtype=np.uint8)
    breaks = np.flatnonzero(characters == ord("\n"))
    starts = np.concatenate([[0], breaks[:-1] + 1])
    ends = breaks - ((breaks > starts) & (characters[breaks - 1] == ord("\r")))
    # One array of line, break, line, break, … over the same bytes; every second value is a line.
    edges = np.empty(2 * len(breaks) + 1, dtype=np.int32)
    edges[0:-1:2], edges[1::2], edges[-1] = starts, ends, len(data)
    pieces = pa.BinaryArray.from_buffers(
        pa.binary(), len(edges) - 1, [None, pa.py_buffer(edges), pa.py_buffer(data)]
    )
    return pieces.take(pa.array(np.arange(0, len(pieces), 2)))
