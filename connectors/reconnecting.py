"""When to try again to reach a source that was lost."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from connectors import ConnectorError

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
