"""Clocks of a replica: a steady time of day, and event time."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]
"""Clock in seconds: monotonic (:func:`time.monotonic`) for waits, a time of day to date values."""


class SteadyTime:
    """Time of day that advances steadily from its creation, even if the machine's clock is set.

    A later observation must never look older than an earlier one.

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
        """Never show a time before ``seconds``, as seen by another process with a faster clock."""
        self._offset += max(0.0, seconds - self())


class EventTime:
    """Clock that shows the time of the evaluation under way, for remotes replayed with the stream.

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
        """Set the clock to a time."""
        self._seconds = time_ms / 1000

    def go_on_from(self, seconds: float) -> None:
        """Show the last time that another process has shown."""
        self._seconds = seconds
