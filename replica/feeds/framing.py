"""Bytes that come in pieces, as the messages that they hold: lines, or server-sent events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

LONGEST_MESSAGE = 1 << 20
"""How many bytes of a message are kept. One that is cut here is no JSON any more, and so is counted as bad."""
_LONGEST_ID = 1024


class Framing(Protocol):
    """Finds messages in bytes."""

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece and return the messages that are whole now."""
        ...

    def end(self) -> bytes:
        """Return the message that the end of the bytes ends, if there is one; begin anew."""
        ...


class Lines:
    r"""Whole lines out of pieces, without their line breaks; the last is held until its own comes.

    >>> lines = Lines()
    >>> list(lines.feed(b"one\ntw")), list(lines.feed(b"o\r\n\nthree")), lines.end()
    ([b'one'], [b'two', b''], b'three')
    """

    def __init__(self, longest: int = LONGEST_MESSAGE) -> None:
        self._longest = longest
        self._held = bytearray()

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Take the next piece and return the lines that are whole now."""
        *ended, rest = piece.split(b"\n")
        for part in ended:
            self._hold(part)
            yield self.end()
        self._hold(rest)

    def end(self) -> bytes:
        """Return the line that has no line break yet, and begin anew."""
        line, self._held = bytes(self._held), bytearray()
        return line.removesuffix(b"\r")

    def _hold(self, part: bytes) -> None:
        self._held += part[: self._longest - len(self._held)]


class ServerSentEvents:
    r"""The data of server-sent events, and what they say of reconnecting: the last event's id, and the wait.

    Events of all types count; one that no empty line ends never came. Lines end with ``\n`` or ``\r\n``.

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
        """Take the next piece and return the data of the events that are whole now."""
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
        """Return nothing: the end ends no event."""
        return b""

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data += (value + b"\n")[: LONGEST_MESSAGE - len(self._data)]
        elif name == b"id" and len(value) <= _LONGEST_ID and all(0x20 <= byte < 0x7F for byte in value):
            # It goes into a header of ours: nothing else may come with it.
            self._id = value.decode("ascii")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_seconds = int(value) / 1000
