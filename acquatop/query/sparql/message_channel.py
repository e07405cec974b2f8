"""Messages between two processes over a socket, with deadlines for all of a message."""

from __future__ import annotations

import math
import pickle
import select
import socket
import struct
import time
from collections.abc import Callable
from typing import Any, Protocol

_HEAD = struct.Struct("!Q")
_PIECE = 1 << 20


class MissedDeadlineError(Exception):
    """A message could not be sent or received in time."""


class Beside(Protocol):
    """Something to read while a message is awaited, so that its writer is not blocked."""

    def fileno(self) -> int:
        """Return the number of the open file."""

    def read(self) -> bool:
        """Read what is there; return False at the end."""


class MessageChannel:
    """Channel of messages, which may be any objects that can be pickled. Not thread-safe.

    ``beside`` is read whenever this end waits. Sending and receiving raise
    :class:`MissedDeadlineError` at a time of ``clock``, and :class:`EOFError` or :class:`OSError`
    if the other end has gone; the channel is of no use then.
    """

    def __init__(
        self,
        line: socket.socket,
        beside: Beside | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._line = line
        self._line.setblocking(False)
        self._beside = beside
        self._clock = clock

    def send(self, message: object, until: float = math.inf) -> None:
        """Send a message."""
        body = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        for part in (_HEAD.pack(len(body)), body):
            left = memoryview(part)
            while left:
                self._wait(select.POLLOUT, until)
                left = left[self._line.send(left[:_PIECE]) :]

    def receive(self, until: float = math.inf) -> Any:
        """Return the next message."""
        (size,) = _HEAD.unpack(self._read(_HEAD.size, until))
        return pickle.loads(self._read(size, until))  # noqa: S301 (our own process sent it)

    def close(self) -> None:
        """Close this end."""
        self._line.close()

    def _read(self, size: int, until: float) -> bytearray:
        data = bytearray(size)
        left = memoryview(data)
        while left:
            self._wait(select.POLLIN, until)
            count = self._line.recv_into(left)
            if count == 0:
                raise EOFError
            left = left[count:]
        return data

    def _wait(self, what: int, until: float) -> None:
        """Return when the socket is ready; read what is beside it meanwhile."""
        line = self._line.fileno()
        if line < 0:
            raise EOFError  # closed by another thread
        poll = select.poll()
        poll.register(line, what)
        if self._beside is not None:
            poll.register(self._beside.fileno(), select.POLLIN)
        while True:
            left = until - self._clock()
            if left <= 0:
                raise MissedDeadlineError
            ready = dict(poll.poll(None if left == math.inf else math.ceil(1_000 * left)))
            beside = self._beside
            if beside is not None and beside.fileno() in ready and not beside.read():
                poll.unregister(beside.fileno())
                self._beside = None
            if line in ready:
                return
