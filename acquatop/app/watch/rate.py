"""Rate of events over the last seconds."""

from __future__ import annotations

from collections import deque

from replica.clocks import Clock

WINDOW = 5.0
"""Seconds over which a rate is taken."""


class Rate:
    """Events per second over a sliding window.

    Time O(1) amortised; memory one entry per tenth of the window.

    >>> now = 0.0
    >>> rate = Rate(clock=lambda: now, seconds=5.0)
    >>> rate.add(100)
    >>> now = 2.0
    >>> rate.add(100)
    >>> rate()
    100.0
    >>> now = 6.0
    >>> rate()
    20.0
    >>> now = 60.0
    >>> rate()
    0.0
    """

    def __init__(self, *, clock: Clock, seconds: float = WINDOW) -> None:
        self._clock = clock
        self._seconds = seconds
        self._parts: deque[tuple[float, int]] = deque()
        self._sum = 0
        self._since = clock()

    def add(self, count: int) -> None:
        """Count events that came just now."""
        now = self._clock()
        self._sum += count
        if self._parts and now - self._parts[-1][0] < self._seconds / 10:
            at, before = self._parts.pop()
            self._parts.append((at, before + count))
        else:
            self._parts.append((now, count))
        self._forget(now)

    def __call__(self) -> float:
        """Return the events per second of the window, or since the start if that is shorter."""
        now = self._clock()
        self._forget(now)
        seconds = min(self._seconds, now - self._since)
        return self._sum / seconds if seconds > 0 else 0.0

    def _forget(self, now: float) -> None:
        while self._parts and now - self._parts[0][0] >= self._seconds:
            self._sum -= self._parts.popleft()[1]
