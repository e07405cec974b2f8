"""Reading of a request's head from a socket: bounded in bytes and in time."""

from __future__ import annotations

import socket
from http import HTTPStatus

from replica.clocks import Clock

END = (b"\r\n\r\n", b"\n\n")


class HeadError(Exception):
    """Refusal of a request's head, with a status."""

    def __init__(self, status: HTTPStatus) -> None:
        super().__init__(status.phrase)
        self.status = status


def read_head(connection: socket.socket, *, most: int, seconds: float, clock: Clock) -> bytes:
    """Return a request's line and headers; empty if the client ends before any byte.

    Raises :class:`HeadError` for a head that is too long, too slow, or ends early. Time and memory
    are linear in ``most``.
    """
    head, deadline = bytearray(), clock() + seconds
    while True:
        left = deadline - clock()
        if left <= 0:
            raise HeadError(HTTPStatus.REQUEST_TIMEOUT)
        connection.settimeout(left)
        try:
            part = connection.recv(most + 1 - len(head))
        except TimeoutError:
            raise HeadError(HTTPStatus.REQUEST_TIMEOUT) from None
        if not part and head:
            raise HeadError(HTTPStatus.BAD_REQUEST)
        since = max(0, len(head) - 3)
        head += part
        if not part or any(head.find(end, since) >= 0 for end in END):
            return bytes(head)
        if len(head) > most:
            raise HeadError(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE)
