"""Time, as what keeps a replica sees it."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds. What limits waiting only goes forward (:func:`time.monotonic`); what dates values is a time of day."""


class SteadyTime:
    """The time of day, which goes on steadily from when this was made, whatever is done to the machine's clock.

    What was learned last must never look older than what was learned before.

    >>> steady = iter([50.0, 53.0])
    >>> time = SteadyTime(wall=lambda: 1000.0, steady=lambda: next(steady))
    >>> time()
    1003.0
    """

    def __init__(self, wall: Clock = time.time, steady: Clock = time.monotonic) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def __call__(self) -> float:
        """Return seconds since the epoch."""
        return self._offset + self._steady()

    def go_on_from(self, seconds: float) -> None:
        """Show no earlier time than this from now on: what another process has seen, whose clock was ahead."""
        self._offset += max(0.0, seconds - self())


class EventTime:
    """A clock that shows the time of the evaluation under way: for remotes that are replayed with the stream.

    >>> time = EventTime()
    >>> time.show(1500)
    >>> time()
    1.5
    """

    def __init__(self) -> None:
        self._seconds = 0.0

    def __call__(self) -> float:
        """Return seconds since the epoch."""
        return self._seconds

    def show(self, time_ms: int) -> None:
        """Go on to a time."""
        self._seconds = time_ms / 1000

    def go_on_from(self, seconds: float) -> None:
        """Show what another process has shown last."""
        self._seconds = seconds
