"""Packets of MQTT as bytes: handles published messages, leaves the rest to the client library.

A client library makes some ten objects of each message and reads a few bytes per system call. Here
the connection is read in large pieces, and a message costs only the few slices of its parts.
"""

from __future__ import annotations

import ssl
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

_PUBLISH, _PUBREL, _PINGRESP = 3, 6, 13
_PING = b"\xc0\x00"
_PUBACK, _PUBREC, _PUBCOMP = b"\x40\x02", b"\x50\x02", b"\x70\x02"
PIECE = 256 << 10
"""Maximum number of bytes of one read."""
KEPT_OF_LONG = 1024
"""Number of bytes kept of a message that is too long."""


class Message(NamedTuple):
    """A published message.

    ``packet`` is its number between the broker and this client, 0 with QoS 0.
    """

    topic: bytes
    payload: bytes
    qos: int
    retain: bool
    again: bool
    packet: int
    size: int


class TappedSocket:
    """Socket of a connection that takes out published messages and their acknowledgements.

    The client library sees a socket that carries everything else. All output waits in one queue, so
    packets are never mixed. Not thread-safe.
    """

    def __init__(self, socket: Any, *, has_properties: bool, max_message_bytes: int) -> None:
        self.messages: list[Message] = []
        """Messages published since the list was emptied."""
        self.processed = 0
        """Number of acknowledgements that the broker has certainly processed.

        It has answered a later packet.
        """
        self.lost_by: OSError | None = None
        """Error of the system that ended the connection, such as a certificate that the broker
        misses."""
        self._acknowledged = 0
        self._pings: deque[int] = deque()
        self._socket = socket
        self._has_properties = has_properties
        self._longest = max_message_bytes
        self._buffer = b""
        self._skip = 0
        self._rest = bytearray()
        self._unsent = bytearray()
        self._is_closed = False

    # Interface for the client library ---------------------------------------------------------

    def recv(self, size: int) -> bytes:
        """Return data for the client library, like a non-blocking socket."""
        if not self._rest:
            if self._is_closed:
                return b""
            raise BlockingIOError
        piece = bytes(self._rest[:size])
        del self._rest[:size]
        return piece

    def send(self, content: bytes) -> int:
        """Queue data to be sent, and send as much as possible."""
        if content == _PING:
            self._pings.append(self._acknowledged)
        self._unsent += content
        self.flush()
        return len(content)

    def pending(self) -> int:
        """Return the number of bytes for the client library; 1 if there are none but the end."""
        return len(self._rest) or int(self._is_closed)

    def setblocking(self, blocks: bool) -> None:
        """Set the blocking mode of the socket."""
        self._socket.setblocking(blocks)

    def fileno(self) -> int:
        """Return the socket's file descriptor."""
        number: int = self._socket.fileno()
        return number

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    @property
    def incomplete(self) -> int:
        """Number of bytes held of a packet that has not come to its end."""
        return len(self._buffer)

    # Interface for the source -----------------------------------------------------------------

    def fill(self) -> bool:
        """Read received data; return False if there is none."""
        try:
            piece = self._socket.recv(PIECE)
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return False
        except OSError as error:
            piece, self.lost_by = b"", error
        if not piece:
            self._is_closed = True
            return False
        self._take(piece)
        return True

    def holds_back(self) -> bool:
        """Return True if TLS has read ahead, so that more data may wait than the system reports."""
        return isinstance(self._socket, ssl.SSLSocket) and self._socket.pending() > 0

    def has_unsent(self) -> bool:
        """Return True if data waits to be sent."""
        return bool(self._unsent)

    def flush(self) -> None:
        """Send as much as the connection takes."""
        try:
            while self._unsent:
                sent = self._socket.send(self._unsent)
                del self._unsent[:sent]
        except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
            return
        except OSError:
            self._is_closed = True

    def acknowledge(self, messages: Sequence[tuple[int, int]]) -> None:
        """Acknowledge messages, each given by its quality of service and its number, in order.

        Then ask for a reply: a broker processes packets in order, so the reply proves that the
        acknowledgements have arrived.
        """
        if messages:
            kinds = {1: _PUBACK, 2: _PUBREC}
            self.send(
                b"".join([kinds[qos] + packet.to_bytes(2, "big") for qos, packet in messages])
            )
            self._acknowledged += len(messages)
            self.send(_PING)

    def _take(self, piece: bytes) -> None:
        """Cut received data into packets; O(its length)."""
        if self._skip:
            skipped = min(self._skip, len(piece))
            self._skip -= skipped
            piece = piece[skipped:]
        data = self._buffer + piece if self._buffer else piece
        start, size = 0, len(data)
        while size - start >= 2:
            length, begin = data[start + 1], start + 2
            if length & 128:
                length, begin = _number_at(data, start + 1)
                if not begin:
                    break
            end = begin + length
            kind = data[start] >> 4
            if kind == _PUBLISH and length > self._longest:
                kept = begin + 2 + int.from_bytes(data[begin : begin + 2], "big") + 2 + KEPT_OF_LONG
                if size < min(kept, end):
                    break
                self._publish(data, start, begin, min(kept, end), length)
                self._skip = max(0, end - size)
                start = min(end, size)
                continue
            if end > size:
                break
            if kind == _PUBLISH:
                self._publish(data, start, begin, end, length)
            else:
                self._take_other(kind, data[start:end], data[begin:end])
            start = end
        self._buffer = data[start:]

    def _take_other(self, kind: int, packet: bytes, body: bytes) -> None:
        """Process a packet that publishes nothing."""
        if kind == _PUBREL:
            # The broker knows that the message has arrived. It may reuse the number after this.
            self.send(_PUBCOMP + body[:2])
            return
        if kind == _PINGRESP and self._pings:
            self.processed = self._pings.popleft()
        self._rest += packet

    def _publish(self, data: bytes, start: int, begin: int, end: int, length: int) -> None:
        flags = data[start]
        at = begin + 2 + (data[begin] << 8 | data[begin + 1])
        topic = data[begin + 2 : at]
        qos, packet = flags >> 1 & 3, 0
        if qos:
            packet = data[at] << 8 | data[at + 1]
            at += 2
        if self._has_properties:
            length_of_them, at = _number_at(data, at)
            at += length_of_them
        whole = begin + length - at
        self.messages.append(
            Message(topic, data[at:end], qos, bool(flags & 1), bool(flags & 8), packet, whole)
        )


def _number_at(data: bytes, at: int) -> tuple[int, int]:
    """Return a number of MQTT's variable length and the position after it.

    The position is 0 if the number is incomplete.

    >>> _number_at(bytes([0, 193, 2]), 1), _number_at(bytes([0, 193]), 1)
    ((321, 3), (0, 0))
    """
    number = 0
    for place in range(4):
        if at + place >= len(data):
            return 0, 0
        byte = data[at + place]
        number |= (byte & 127) << 7 * place
        if not byte & 128:
            return number, at + place + 1
    return 0, 0
