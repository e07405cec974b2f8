"""Open stream: a thread reads the socket, so that a busy caller finds all data at once."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from contextlib import suppress
from http.client import HTTPException

from requests import Response
from urllib3.exceptions import HTTPError

FAILURES = (OSError, HTTPError, HTTPException, ValueError)
"""Exceptions from sending a request or reading its answer.

Those of ``requests`` are OSErrors.
"""
ROOM = 4 << 20
"""Number of unread bytes above which the socket is not read, which makes X wait (backpressure)."""
_PIECE = 1 << 16


class Connection:
    """Body of an endless reply, read from its start on. Memory: ``room`` bytes and one piece."""

    def __init__(self, response: Response, room: int = ROOM) -> None:
        self._response = response
        self._room = room
        self._pieces: list[bytes] = []
        self._length = 0
        self._end: str | None = None
        self._is_closed = False
        self._changed = threading.Condition()

    def start(self) -> None:
        """Start to read, in a thread that ends with the connection."""
        threading.Thread(target=self._read, name="reading from X", daemon=True).start()

    def take(self, wait_seconds: float) -> bytes:
        """Return the data received since the last call.

        Waits for it ``wait_seconds`` at most; returns nothing if none came.
        """
        with self._changed:
            self._changed.wait_for(lambda: self._pieces or self._end, wait_seconds)
            taken, self._pieces, self._length = b"".join(self._pieces), [], 0
            self._changed.notify_all()
            return taken

    @property
    def end(self) -> str | None:
        """The reason why no more data will come, after all data is taken; None before."""
        with self._changed:
            return None if self._pieces else self._end

    def close(self) -> None:
        """Close the connection, whatever the other side does."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        # Closing would wait for the reading thread; this makes it return.
        with suppress(*FAILURES, RuntimeError, AttributeError):
            self._response.raw.shutdown()

    def _read(self) -> None:
        end = "X has closed the connection"
        try:
            for piece in iter(lambda: self._response.raw.read1(_PIECE, decode_content=False), b""):
                if not self._put(piece):
                    break
        except FAILURES as error:
            end = words_of(error)
        finally:
            with suppress(*FAILURES):
                self._response.close()
            with self._changed:
                self._end = end
                self._changed.notify_all()

    def _put(self, piece: bytes) -> bool:
        """Append a piece once there is room; return False if the connection is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._length < self._room or self._is_closed)
            self._pieces.append(piece)
            self._length += len(piece)
            self._changed.notify_all()
            return not self._is_closed


def words_of(error: BaseException) -> str:
    """Return the cause of a failure below HTTP, from the nested errors of libraries.

    >>> words_of(ConnectionRefusedError(111, "Connection refused"))
    'Connection refused'
    """
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, TimeoutError):
            return "the answer took too long"
    said = next(
        (each.strerror for each in reversed(chain) if isinstance(each, OSError) and each.strerror),
        None,
    )
    return said or (str(chain[-1]) if type(chain[-1]) is OSError else "the connection broke off")


def _chain(error: BaseException | None) -> Iterable[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        yield error
        seen.add(id(error))
        error = error.__cause__ or error.__context__
