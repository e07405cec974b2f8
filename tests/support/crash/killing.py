"""Ways to end a life early, as functions that return True if it was killed."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from acquatop.errors import EnvironmentProblem
from tests.support.crash import child
from tests.support.crash.life import Life
from tests.support.crash.reaper import Killed, Point, Reaper
from tests.support.crash.trial import LivesOn
from tests.support.crash.world import People


def in_process(point: Point) -> LivesOn:
    """Die at a point without a process: from there on nothing can be done that anyone could see."""
    return lambda life: strikes(point, life.live)


def strikes(point: Point, live: Callable[[], object]) -> bool:
    """Live, and die at a point; return False if the life has come to its end before."""
    reaper = Reaper(point)
    with reaper.at_work():
        try:
            live()
        except (Killed, EnvironmentProblem):
            if not reaper.has_struck:
                raise
    return reaper.has_struck


@dataclass
class Processes:
    """Lives in processes of their own, each with its own hash seed."""

    people: People
    seconds: list[float] = field(default_factory=list)
    """Seconds that each took to begin, from the time its code was loaded."""
    failed: list[str] = field(default_factory=list)
    """Errors of those that failed without being killed."""
    count: int = 0

    def to_its_end(self) -> LivesOn:
        """Kill nobody."""
        return lambda life: child.end_of(
            child.start(life, seed=self._seed()), self.seconds, self.failed
        )

    def by_itself(self, point: Point) -> LivesOn:
        """Let a process kill itself at a point."""
        return lambda life: child.end_of(
            child.start(life, point, seed=self._seed()), self.seconds, self.failed
        )

    def by_java(self, point: Point) -> LivesOn:
        """Kill the Java of a process at a point: the process ends with an error."""
        return lambda life: child.end_of(
            child.start(life, point, "java", self._seed()), self.seconds, self.failed
        )

    def by_request(self, count: int) -> LivesOn:
        """Kill a process from outside while it waits for the answer to a request."""

        def live(life: Life) -> bool:
            process = child.start(life, seed=self._seed())

            def kill(number: int) -> None:
                if number == count:
                    os.kill(process.pid, signal.SIGKILL)

            self.people.on_request = kill
            try:
                return child.end_of(process, self.seconds, self.failed)
            finally:
                self.people.on_request = lambda number: None

        return live

    def _seed(self) -> int:
        self.count += 1
        return self.count


def some_of(ways: deque[tuple[str, LivesOn]], most: int = 12) -> Iterator[tuple[str, LivesOn]]:
    """Yield so many of the ways at most, and leave the others.

    Lives come to their end sooner than all are used.
    """
    for _ in range(min(most, len(ways))):
        yield ways.popleft()
