"""Simulated time: what happens next, and a trace of what has happened."""

from __future__ import annotations

import hashlib
import heapq
import itertools
from collections.abc import Callable
from random import Random

Action = Callable[[], None]


class Killed(BaseException):
    """End of a life: nothing with an effect outside may be done any more."""


class Schedule:
    """Events of a run in the order of simulated time; equal times come as they were planned.

    Those of the network (replies, pushes) also happen while the engine waits within a step.
    """

    def __init__(self, random: Random) -> None:
        self.random = random
        self.now = 0.0
        self.wall_offset = 1_700_000_000.0
        self.trace: list[str] = []
        self._numbers = itertools.count()
        self._events: list[tuple[float, int, Action]] = []
        self._network: list[tuple[float, int, Action]] = []

    def clock(self) -> float:
        """Return the monotonic clock's time."""
        return self.now

    def wall_clock(self) -> float:
        """Return the time of day."""
        return self.now + self.wall_offset

    def tell(self, what: str) -> None:
        """Add a line to the trace."""
        self.trace.append(f"{self.now:9.4f} {what}")

    def digest(self) -> str:
        """Return a hash of the trace."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()

    def after(self, seconds: float, action: Action, *, network: bool = False) -> None:
        """Plan an event."""
        events = self._network if network else self._events
        heapq.heappush(events, (self.now + seconds, next(self._numbers), action))

    def clear(self, *, network: bool) -> None:
        """Forget the events of a life that has ended."""
        (self._network if network else self._events).clear()

    def next_at(self, *, network: bool = False) -> float | None:
        """Return the time of the next event, or of the network; None if there is none."""
        queues = (self._network,) if network else (self._network, self._events)
        return min((queue[0][0] for queue in queues if queue), default=None)

    def step(self, *, network: bool = False) -> None:
        """Let the next event happen."""
        queues = (self._network,) if network else (self._network, self._events)
        queue = min((each for each in queues if each), key=lambda each: each[0][:2])
        at, _, action = heapq.heappop(queue)
        self.now = max(self.now, at)
        action()

    def wait(self, is_over: Callable[[], bool], seconds: float) -> bool:
        """Let the network go on until something is so, or time is over; return True if it is so."""
        until = self.now + seconds
        while not is_over():
            at = self.next_at(network=True)
            if at is None or at > until:
                self.now = max(self.now, until)
                return is_over()
            self.step(network=True)
        return True
