"""Sources that are reached again when they are lost, and when to try."""

from __future__ import annotations

import random
import time
from abc import abstractmethod
from collections.abc import Callable

import pyarrow as pa

from connectors import ConnectorError
from connectors.line_buffer import SCHEMA, received
from connectors.live import LiveSource
from connectors.log.writer import Remembered

FIRST_SECONDS, LONGEST_SECONDS = 0.1, 30.0


class Reconnecting:
    """Says when the next attempt may be made: soon at first, ever later while it fails, up to half a minute.

    Half of each wait is left to chance, so that many clients do not come at once. The first connection must come about
    within ``patience`` seconds; once there has been one, attempts go on for ever.
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
        """Return how long to wait for the next attempt."""
        return max(0.0, self._next - self._clock())

    def connected(self) -> None:
        """Note a success."""
        self._gives_up_at, self._wait = None, FIRST_SECONDS

    def failed(self, what: str, error: BaseException) -> None:
        """Note a failure; raises :class:`~connectors.ConnectorError` when the patience is over."""
        now = self._clock()
        if self._gives_up_at is not None and now >= self._gives_up_at:
            hint = "see that it is running, and that the address is right"
            raise ConnectorError(f"{what} cannot be reached: {error}\n  hint: {hint}") from error
        self._next = now + self._wait * (0.5 + 0.5 * self._chance())
        self._wait = min(2 * self._wait, LONGEST_SECONDS)


class ReconnectingSource(LiveSource):
    """Lines from the other end of a connection that nothing comes again of, and where nobody is told what is durable.

    Where a connection is called ``where`` in messages. The first must come about within ``patience`` seconds; one that
    is lost is made anew for as long as it takes.
    """

    schema = SCHEMA
    failures: tuple[type[Exception], ...] = (OSError,)
    """What is raised where a connection fails, and another may do."""

    def __init__(self, where: str, patience: float) -> None:
        self._where = where
        self._patience = patience
        self._attempts = Reconnecting(patience)

    def open(self, remembered: Remembered) -> None:
        """Begin to try; what was logged does not matter, as nothing comes again."""
        self._attempts = Reconnecting(self._patience)

    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return the lines that have come, once there are some; connect first if that is needed and may be tried."""
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

    def _lost(self, error: Exception) -> None:
        """Let go of the connection; raises what no further attempt would mend."""
        self.close()
        if isinstance(error, ConnectorError):
            raise error
        self._attempts.failed(self._where, error)

    def acknowledge(self) -> None:
        """Do nothing: there is nobody to be told."""

    @property
    @abstractmethod
    def is_connected(self) -> bool:
        """Whether there is a connection to read from."""

    @abstractmethod
    def _connect(self) -> None:
        """Make the connection."""

    @abstractmethod
    def _read(self, seconds: float) -> list[bytes]:
        """Return the lines that have come, some megabytes at most; none if nothing has for so many seconds."""
