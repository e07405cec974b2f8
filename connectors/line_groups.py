"""Where a file may be cut without tearing apart lines that belong together."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

LineKey = Callable[[bytes], bytes | None]
"""What neighbouring lines share that belong together; None for lines that belong to those before them."""

_CHUNK = 1 << 16
_SUBJECT = re.compile(rb'[ \t]*(<[^>\r\n]*>?|[^\s<"]*)')
_QUAD = re.compile(
    rb'[ \t]*(<[^>\r\n]*>|[^\s<"]+)[ \t]*<[^>\r\n]*>'
    rb'[ \t]*(?:<[^>\r\n]*>|_:[^\s<"]+|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^[ \t]*<[^>\r\n]*>)?)'
    rb"[ \t]*(<[^>\r\n]*>|_:[^\s.]+)?"
)


def subject_of(line: bytes) -> bytes | None:
    """Return a statement's subject as it is written, nothing for an empty line, None for a comment.

    >>> subject_of(b"<urn:a> <urn:p> <urn:b> ."), subject_of(b" "), subject_of(b"# more of a")
    (b'<urn:a>', b'', None)
    """
    match = _SUBJECT.match(line)
    assert match is not None, "the expression matches any line"
    return None if line.lstrip(b" \t").startswith(b"#") else match[1]


def subject_and_graph_of(line: bytes) -> bytes | None:
    """Return a statement's subject and graph as they are written; of what is not one as :func:`subject_of`.

    >>> subject_and_graph_of(b'<urn:a> <urn:p> "b <c>" <urn:g> .')
    b'<urn:a> <urn:g>'
    """
    match = _QUAD.match(line)
    return subject_of(line) if match is None else match[1] + b" " + (match[2] or b"")


TOGETHER: dict[str, LineKey] = {"subject": subject_of, "subject and graph": subject_and_graph_of}
"""The ways in which lines may belong together, by the names that the option ``together`` has for them."""


class LineEnds:
    """Every line stands for itself: a file may be cut behind any line break."""

    def last_before(self, stream: BinaryIO, begin: int, stop: int) -> int:
        """Return the last cut in ``(begin, stop]``, ``begin`` if there is none."""
        high = stop
        while high > begin:
            low = max(begin, high - _CHUNK)
            found = _read(stream, low, high).rfind(b"\n")
            if found >= 0:
                return low + found + 1
            high = low
        return begin

    def first_after(self, stream: BinaryIO, begin: int, size: int) -> int | None:
        """Return the first cut in ``(begin, size]``, None if there is none."""
        return _next_line(stream, begin, size)

    def near(self, stream: BinaryIO, position: int, size: int) -> int | None:
        """Return a cut in ``(position, size]`` that is not far behind a position anywhere in a line."""
        return _next_line(stream, position, size)


@dataclass(frozen=True)
class GroupEnds:
    """Neighbouring lines with one key belong together: a file may be cut where a whole line has another key.

    What follows the last such place may still grow. A search costs what it passes over, the length of
    the group it begins in.
    """

    key: LineKey

    def last_before(self, stream: BinaryIO, begin: int, stop: int) -> int:
        """Return the last cut in ``(begin, stop]``, ``begin`` if there is none; ``begin`` is one."""
        size = _CHUNK
        while True:
            low = max(begin, stop - size)
            data = _read(stream, low, stop)
            first = 0 if low == begin else data.find(b"\n") + 1
            cut = self._last_change(data, first)
            if cut is not None or low == begin:
                return begin if cut is None else low + cut
            size *= 4

    def first_after(self, stream: BinaryIO, begin: int, size: int) -> int | None:
        """Return the first cut in ``(begin, size]``, None if there is none; a line begins at ``begin``."""
        length = _CHUNK
        while True:
            data = _read(stream, begin, min(size, begin + length))
            cut = self._first_change(data)
            if cut is not None or begin + length >= size:
                return None if cut is None else begin + cut
            length *= 4

    def near(self, stream: BinaryIO, position: int, size: int) -> int | None:
        """Return a cut in ``(position, size]`` that is not far behind a position anywhere in a line."""
        line = _next_line(stream, position, size)
        return None if line is None else self.first_after(stream, line, size)

    def _last_change(self, data: bytes, first: int) -> int | None:
        """Return where the last line begins that has another key than the one before it."""
        end, later, later_key = data.rfind(b"\n"), None, None
        while end >= first:
            start = max(data.rfind(b"\n", 0, end) + 1, first)
            key = self.key(data[start:end])
            if key is not None:
                if later is not None and key != later_key:
                    return later
                later, later_key = start, key
            end = start - 1
        return None

    def _first_change(self, data: bytes) -> int | None:
        """Return where the first line begins that has another key than the one before it."""
        start, earlier = 0, None
        while (end := data.find(b"\n", start)) >= 0:
            key = self.key(data[start:end])
            if key is not None:
                if earlier is not None and key != earlier:
                    return start
                earlier = key
            start = end + 1
        return None


def _next_line(stream: BinaryIO, start: int, size: int) -> int | None:
    """Return the position after the first line break in ``[start, size)``."""
    low = start
    while low < size:
        chunk = _read(stream, low, min(low + _CHUNK, size))
        found = chunk.find(b"\n")
        if found >= 0:
            return low + found + 1
        if not chunk:
            return None
        low += len(chunk)
    return None


def _read(stream: BinaryIO, low: int, high: int) -> bytes:
    stream.seek(low)
    return stream.read(high - low)
