"""Framing of a byte stream into messages: lines, or server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

LONGEST_MESSAGE = 1 << 20
"""Bytes kept of a message. A longer one is cut, so it is invalid JSON and counted as bad."""
_LONGEST_ID = 1024


class Framing(Protocol):
    """Splitter of a byte stream into messages."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece; yield the messages that are complete now."""
        ...

    def end(self) -> bytes:
        """Return the message that the end of the stream completes, if any; start over."""
        ...


class Lines:
    r"""Lines from pieces, without line breaks; an incomplete line is held.

    >>> lines = Lines()
    >>> list(lines.feed(b"one\ntw")), list(lines.feed(b"o\r\n\nthree")), lines.end()
    ([b'one'], [b'two', b''], b'three')
    """

    def __init__(self, longest: int = LONGEST_MESSAGE) -> None:
        self._longest = longest
        self._held = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece; yield the lines that are complete now."""
        *ended, rest = piece.split(b"\n")
        for part in ended:
            self._hold(part)
            yield self.end()
        self._hold(rest)

    def end(self) -> bytes:
        """Return the line without a line break so far, and start over."""
        line, self._held = bytes(self._held), bytearray()
        return line.removesuffix(b"\r")

    def _hold(self, part: bytes) -> None:
        self._held += part[: self._longest - len(self._held)]


class ServerSentEvents:
    r"""Data of server-sent events, with the last event's id and the wait before reconnecting.

    Events of all types count; an event without its empty line at the end is dropped. Lines end with
    ``\n`` or ``\r\n``.

    >>> events = ServerSentEvents()
    >>> list(events.feed(b"id: 7\nretry: 250\ndata: {\ndata: }\n\n: a remark\n\nid: 8\ndata: lost"))
    [b'{\n}']
    >>> events.last_id, events.retry_seconds
    ('7', 0.25)
    """

    def __init__(self, last_id: str = "") -> None:
        self.last_id = last_id
        self.retry_seconds: float | None = None
        self._lines = Lines()
        self._data = bytearray()
        self._id = last_id
        self._begins = True

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece; yield the data of the events that are complete now."""
        for line in self._lines.feed(piece):
            if self._begins:
                line = line.removeprefix(b"\xef\xbb\xbf")
                self._begins = False
            if line:
                self._take(line)
                continue
            self.last_id = self._id
            if self._data:
                yield bytes(self._data[:-1])
            self._data = bytearray()

    def end(self) -> bytes:
        """Return nothing: the end of the stream completes no event."""
        return b""

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data += (value + b"\n")[: LONGEST_MESSAGE - len(self._data)]
        elif (
            name == b"id"
            and len(value) <= _LONGEST_ID
            and all(0x20 <= byte < 0x7F for byte in value)
        ):
            # It is sent in a header: no other characters are allowed.
            self._id = value.decode("ascii")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_seconds = int(value) / 1000
