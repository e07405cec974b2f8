"""Small HTTP servers for tests of the client."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

LONG = 60.0
"""Seconds that nothing takes which works."""


ENOUGH = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Served:
    """Requests and connections that a server has seen, and its address."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}/query"
        self.connections = 0
        self.requests: list[bytes] = []
        self.ended = threading.Event()

    def read(self, connection: socket.socket) -> bytes:
        """Read a request to its end; nothing when there is none."""
        text = b""
        while b"\r\n\r\n" not in text:
            piece = connection.recv(65536)
            if not piece:
                return b""
            text += piece
        head, _, body = text.partition(b"\r\n\r\n")
        length = next(
            (
                int(line[15:])
                for line in head.lower().split(b"\r\n")
                if line.startswith(b"content-length:")
            ),
            0,
        )
        while len(body) < length:
            body += connection.recv(65536)
        self.requests.append(head + b"\r\n\r\n" + body)
        return self.requests[-1]


@contextmanager
def serving(
    handle: Callable[[Served, Any], None], tls: ssl.SSLContext | None = None
) -> Iterator[Served]:
    """A server that leaves each connection to a function, in a thread of its own."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        served = Served(listener.getsockname()[1])

        def attend(connection: socket.socket) -> None:
            with (
                suppress(OSError),
                tls.wrap_socket(connection, server_side=True) if tls else connection as line,
            ):
                lines.append(line)
                handle(served, line)

        def accept() -> None:
            with suppress(OSError):
                while not served.ended.is_set():
                    connection, _ = listener.accept()
                    served.connections += 1
                    threads.append(threading.Thread(target=attend, args=(connection,), daemon=True))
                    threads[-1].start()

        lines: list[socket.socket] = []
        threads = [threading.Thread(target=accept, daemon=True)]
        threads[0].start()
        try:
            yield served
        finally:
            served.ended.set()
            # What waits for someone to connect, or to say something, is to wait no longer.
            socket.create_connection(listener.getsockname()).close()
            threads[0].join(LONG)
            for line in lines:
                with suppress(OSError):
                    line.shutdown(socket.SHUT_RDWR)
            for thread in threads[1:]:
                thread.join(LONG)


def always(*replies: bytes) -> Callable[[Served, Any], None]:
    """Answer the requests of a connection with these, one after the other, and then end it."""

    def handle(served: Served, connection: Any) -> None:
        for reply in replies:
            if not served.read(connection):
                return
            connection.sendall(reply)
        connection.shutdown(socket.SHUT_WR)
        while connection.recv(65536):
            pass

    return handle
