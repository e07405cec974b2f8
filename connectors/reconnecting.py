"""Sources that reconnect when the connection is lost, and the timing of their attempts."""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections.abc import Callable

import pyarrow as pa

from connectors import ConnectorError
from connectors.line_buffer import SCHEMA, received
from connectors.live_source import LiveSource
from connectors.log.writer import Remembered

FIRST_SECONDS, LONGEST_SECONDS = 0.1, 30.0
HINT = "see that it is running, and that the address is right"


class Reconnecting:
    """Schedule of attempts: the wait doubles with each failure, up to half a minute.

    Half of each wait is random, so that many clients do not reconnect at once. The first connection
    must succeed within ``patience`` seconds; after one success, attempts go on for ever.
    """

    def __init__(
        self,
        patience: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._clock = clock
        self._chance = chance
        self._gives_up_at: float | None = clock() + patience
        self._wait = FIRST_SECONDS
        self._next = clock()

    def seconds(self) -> float:
        """Return the seconds to wait before the next attempt."""
        return max(0.0, self._next - self._clock())

    def connected(self) -> None:
        """Note a success."""
        self._gives_up_at, self._wait = None, FIRST_SECONDS

    def failed(self, what: str, error: BaseException) -> None:
        """Note a failure; raise :class:`~connectors.ConnectorError` if the patience is over."""
        now = self._clock()
        if self._gives_up_at is not None and now >= self._gives_up_at:
            raise ConnectorError(f"{what} cannot be reached: {error}\n  hint: {HINT}") from error
        self._next = now + self._wait * (0.5 + 0.5 * self._chance())
        self._wait = min(2 * self._wait, LONGEST_SECONDS)


class ReconnectingSource(LiveSource):
    """Source of lines from a connection without acknowledgements or repetitions.

    ``where`` is the connection's name in messages. The first connection must succeed within
    ``patience`` seconds; a lost one is retried until it succeeds.
    """

    schema = SCHEMA
    failures: tuple[type[Exception], ...] = (OSError,)
    """Exceptions of a failed connection after which another attempt may succeed."""

    def __init__(self, where: str, patience: float) -> None:
        self._where = where
        self._patience = patience
        self._attempts = Reconnecting(patience)

    def open(self, remembered: Remembered) -> None:
        """Start to connect; the log is ignored, because nothing comes again."""
        self._attempts = Reconnecting(self._patience)

    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return the received lines, once there are some; connect first if necessary and due."""
        until = time.monotonic() + wait_seconds
        while (left := until - time.monotonic()) > 0:
            if not self.is_connected:
                self._try(left)
            elif lines := self._read(left):
                return received(lines)
        return None

    def _try(self, seconds: float) -> None:
        wait = self._attempts.seconds()
        if wait > 0:
            time.sleep(min(wait, seconds))
            return
        try:
            self._connect()
        except self.failures as error:
            self._lost(error)
        else:
            self._attempts.connected()
            self.link.made()

    def _lost(self, error: Exception) -> None:
        """Close the connection; raise errors that no further attempt would solve."""
        self.close()
        if isinstance(error, ConnectorError):
            raise error
        self.link.failed(self._words(error), self._hint(error))
        self._attempts.failed(self._where, error)

    def acknowledge(self) -> None:
        """Do nothing: the other end expects no acknowledgement."""

    def _words(self, error: Exception) -> str:
        """Return a failure for people, without secrets."""
        return getattr(error, "strerror", None) or str(error) or type(error).__name__

    def _hint(self, error: Exception) -> str:
        """Return the remedy of a failure."""
        return HINT

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """True if there is a connection to read from."""

    @abstractmethod
    def _connect(self) -> None:
        """Make the connection."""

    @abstractmethod
    def _read(self, seconds: float) -> list[bytes]:
        """Return the received lines, some megabytes at most; none after ``seconds`` of silence."""
