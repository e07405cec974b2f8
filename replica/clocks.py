"""Time, as what keeps a replica sees it."""

from __future__ import annotations

from collections.abc import Callable

Clock = Callable[[], float]
"""Seconds. What limits waiting only goes forward (:func:`time.monotonic`); what dates values is a time of day."""


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
