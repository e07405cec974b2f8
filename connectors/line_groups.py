"""Places where a file may be cut without separating lines that belong together."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

LineKey = Callable[[bytes], bytes | None]
"""Key shared by neighbouring lines that belong together; None for lines of the group before."""

_CHUNK = 1 << 16
_SUBJECT = re.compile(rb'[ \t]*(<[^>\r\n]*>?|[^\s<"]*)')
_QUAD = re.compile(
    rb'[ \t]*(<[^>\r\n]*>|[^\s<"]+)[ \t]*<[^>\r\n]*>'
    rb'[ \t]*(?:<[^>\r\n]*>|_:[^\s<"]+|"(?:[^"\\]|\\.)*"(?:@[A-Za-z0-9-]+|\^\^[ \t]*<[^>\r\n]*>)?)'
    rb"[ \t]*(<[^>\r\n]*>|_:[^\s.]+)?"
)


def subject_of(line: bytes) -> bytes | None:
    """Return a statement's subject as written, empty for an empty line, None for a comment.

    >>> subject_of(b"<urn:a> <urn:p> <urn:b> ."), subject_of(b" "), subject_of(b"# more of a")
    (b'<urn:a>', b'', None)
    """
    match = _SUBJECT.match(line)
    assert match is not None, "the expression matches any line"
    return None if line.lstrip(b" \t").startswith(b"#") else match[1]


def subject_and_graph_of(line: bytes) -> bytes | None:
    """Return a statement's subject and graph as written; for other lines see :func:`subject_of`.

    >>> subject_and_graph_of(b'<urn:a> <urn:p> "b <c>" <urn:g> .')
    b'<urn:a> <urn:g>'
    """
    match = _QUAD.match(line)
    return subject_of(line) if match is None else match[1] + b" " + (match[2] or b"")


TOGETHER: dict[str, LineKey] = {"subject": subject_of, "subject and graph": subject_and_graph_of}
"""Ways in which lines may belong together, by the values of the option ``together``."""


class LineEnds:
    """Cuts at any line break: every line stands alone."""

    def last_before(self, stream: BinaryIO, begin: int, stop: int) -> int:
        """Return the last cut in ``(begin, stop]``, or ``begin`` if there is none."""
        high = stop
        while high > begin:
            low = max(begin, high - _CHUNK)
            found = _read(stream, low, high).rfind(b"\n")
            if found >= 0:
                return low + found + 1
            high = low
        return begin

    def first_after(self, stream: BinaryIO, begin: int, size: int) -> int | None:
        """Return the first cut in ``(begin, size]``, or None if there is none."""
        return _next_line(stream, begin, size)

    def near(self, stream: BinaryIO, position: int, size: int) -> int | None:
        """Return a cut in ``(position, size]`` soon after a position anywhere in a line."""
        return _next_line(stream, position, size)


@dataclass(frozen=True)
class GroupEnds:
    """Cuts between groups: a file may be cut where a complete line has another key.

    Neighbouring lines with one key belong together. The lines after the last cut may still grow. A
    search costs the length of the group in which it begins.
    """

    key: LineKey

    def last_before(self, stream: BinaryIO, begin: int, stop: int) -> int:
        """Return the last cut in ``(begin, stop]``, or ``begin`` if there is none.

        ``begin`` must be a cut.
        """
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
        """Return the first cut in ``(begin, size]``, or None if there is none.

        A line must begin at ``begin``.
        """
        length = _CHUNK
        while True:
            data = _read(stream, begin, min(size, begin + length))
            cut = self._first_change(data)
            if cut is not None or begin + length >= size:
                return None if cut is None else begin + cut
            length *= 4

    def near(self, stream: BinaryIO, position: int, size: int) -> int | None:
        """Return a cut in ``(position, size]`` soon after a position anywhere in a line."""
        line = _next_line(stream, position, size)
        return None if line is None else self.first_after(stream, line, size)

    def _last_change(self, data: bytes, first: int) -> int | None:
        """Return the start of the last line whose key differs from that of the line before it."""
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
        """Return the start of the first line whose key differs from that of the line before it."""
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
