"""Sockets with a deadline that the other side cannot extend.

A socket's own timeout limits each single wait: a peer that sends a byte now and then is waited for
without end. These sockets use the time left until the deadline as the timeout of each wait. Name
lookups, connecting and TLS handshakes have the same limit.
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
    """Deadline passed before there was a connection, so that no request was sent."""


class TimedSocket(socket.socket):
    """Socket with a deadline by :func:`time.monotonic`, set for each connection and request."""

    deadline = 0.0

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        """Receive, or raise TimeoutError at the deadline."""
        _limit(self, self.deadline)
        return super().recv_into(*arguments, **options)

    def sendall(self, *arguments: Any, **options: Any) -> None:
        """Send, or raise TimeoutError at the deadline; one timeout covers all pieces."""
        _limit(self, self.deadline)
        super().sendall(*arguments, **options)


class TimedTlsSocket(ssl.SSLSocket):
    """Socket with a deadline and TLS: ``sendall`` calls :meth:`send` for each piece here."""

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
    """Return a connection to one of a host's addresses, which share the remaining time."""
    addresses = _addresses(host, port, deadline)
    problem: OSError = socket.gaierror(f"{host} has no address")
    for position, address in enumerate(addresses):
        try:
            return _connected(address, deadline, attempts=len(addresses) - position)
        except OSError as error:
            problem = error
    raise (
        ConnectTimeoutError("connecting took too long")
        if isinstance(problem, TimeoutError)
        else problem
    )


def _connected(address: _Address, deadline: float, attempts: int) -> TimedSocket:
    family, kind, protocol, _, place = address
    connection = TimedSocket(family, kind, protocol)
    try:
        connection.deadline = deadline
        connection.settimeout(_left(deadline) / attempts)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.connect(place)
        # A TLS handshake is one wait, limited by this timeout.
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
    """Ask the resolver in a thread that may outlive the deadline: it cannot be interrupted."""
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
