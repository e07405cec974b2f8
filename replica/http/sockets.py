"""Sockets that work until a deadline and no longer, whatever the other side does.

A socket's own timeout bounds one wait of many: whoever sends a byte now and then is waited for without
end. These have what is left until the deadline as the timeout of each wait, so that the last one ends
there. So do looking up a name, connecting and a TLS handshake.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
import time
from collections.abc import Sequence
from typing import Any

_Address = tuple[socket.AddressFamily, socket.SocketKind, int, str, Any]


class ConnectTimeoutError(TimeoutError):
    """The deadline passed before there was a connection, so that nothing was asked."""


class TimedSocket(socket.socket):
    """A socket with a deadline of :func:`time.monotonic`'s; what connects or asks anew sets it."""

    deadline = 0.0

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """Receive, or raise TimeoutError at the deadline."""
        _limit(self, self.deadline)
        return super().recv_into(*arguments, **options)

    def sendall(self, *arguments: Any, **options: Any) -> None:
        """Send, or raise TimeoutError at the deadline; its timeout is one for all pieces."""
        _limit(self, self.deadline)
        super().sendall(*arguments, **options)


class TimedTlsSocket(ssl.SSLSocket):
    """The same with TLS: sending all of something calls :meth:`send` for each piece here."""

    deadline = 0.0

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """Receive, or raise TimeoutError at the deadline."""
        _limit(self, self.deadline)
        return super().recv_into(*arguments, **options)

    def send(self, *arguments: Any, **options: Any) -> int:
        """Send a piece, or raise TimeoutError at the deadline."""
        _limit(self, self.deadline)
        return super().send(*arguments, **options)


def connect(host: str, port: int, deadline: float) -> TimedSocket:
    """Return a connection to one of a host's addresses, all of which have their share of the time that is left."""
    addresses = _addresses(host, port, deadline)
    problem: OSError = socket.gaierror(f"{host} has no address")
    for position, address in enumerate(addresses):
        try:
            return _connected(address, deadline, attempts=len(addresses) - position)
        except OSError as error:
            problem = error
    raise ConnectTimeoutError("connecting took too long") if isinstance(problem, TimeoutError) else problem


def _connected(address: _Address, deadline: float, attempts: int) -> TimedSocket:
    family, kind, protocol, _, place = address
    connection = TimedSocket(family, kind, protocol)
    try:
        connection.deadline = deadline
        connection.settimeout(_left(deadline) / attempts)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect(place)
        # A TLS handshake is one wait, by this timeout.
        _limit(connection, deadline)
    except BaseException:
        connection.close()
        raise
    return connection


def _addresses(host: str, port: int, deadline: float) -> Sequence[_Address]:
    host = host.strip("[]")
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        return _looked_up(host, port, deadline)


def _looked_up(host: str, port: int, deadline: float) -> Sequence[_Address]:
    """Ask the resolver, from a thread that may outlive the deadline: nothing else can end its wait."""
    found: queue.SimpleQueue[Sequence[_Address] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except OSError as error:
            found.put(error)
        except UnicodeError:
            found.put(socket.gaierror("it is not a name"))

    threading.Thread(target=look_up, name=f"looking up {host}", daemon=True).start()
    try:
        answer = found.get(timeout=max(deadline - time.monotonic(), 0.0))
    except queue.Empty:
        raise ConnectTimeoutError("looking up its name took too long") from None
    if isinstance(answer, OSError):
        raise answer
    return answer


def _limit(connection: socket.socket, deadline: float) -> None:
    connection.settimeout(_left(deadline))


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return left
