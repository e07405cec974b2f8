"""Queue of pushed changes that are not stored yet: the newest of each key."""

from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replica.store import Solution

_PORTIONS = 16


@dataclass(frozen=True)
class Pushed:
    """Changes pushed at one time: the arguments of a store's ``put``."""

    asked: list[str]
    solutions: list[Solution]
    now: float


class PushQueue:
    """Queue between feeds and the store; thread-safe.

    It is a feed's sink. A newer change replaces the older one of the same key, so at most one per
    changed key is held, and at most ``limit`` in total. Beyond that the changes that have waited
    longest are lost and counted in ``dropped``; those keys are stale until they change again or are
    asked for. Putting and draining are linear.

    >>> queue = PushQueue()
    >>> queue({"<urn:a>": [{"k": "<urn:a>", "v": '"1"'}], "<urn:b>": []}, now=1.0)
    >>> queue({"<urn:a>": []}, now=2.0)
    >>> for pushed in queue.drain():
    ...     print(pushed)
    Pushed(asked=['<urn:b>'], solutions=[], now=1.0)
    Pushed(asked=['<urn:a>'], solutions=[], now=2.0)
    >>> len(queue)
    0
    """

    def __init__(self, *, limit: int = 1_000_000) -> None:
        self.dropped = 0
        self._limit = limit
        self._lock = threading.Lock()
        self._waiting: dict[str, tuple[float, Sequence[Solution]]] = {}

    def __len__(self) -> int:
        """Return the number of waiting keys."""
        return len(self._waiting)

    def __call__(self, said: Mapping[str, Sequence[Solution]], now: float) -> None:
        """Take changes of some keys; ignores those older than the waiting ones."""
        with self._lock:
            for key, solutions in said.items():
                before = self._waiting.pop(key, None)
                self._waiting[key] = (
                    before if before is not None and before[0] > now else (now, solutions)
                )
            while len(self._waiting) > self._limit:
                del self._waiting[next(iter(self._waiting))]
                self.dropped += 1

    def drain(self, most: int = sys.maxsize) -> list[Pushed]:
        """Return the changes of the ``most`` keys that have waited longest, the oldest first.

        Changes of nearly the same time come together, dated by the last of them, in at most a few
        portions.
        """
        with self._lock:
            if len(self._waiting) <= most:
                taken, self._waiting = list(self._waiting.items()), {}
            else:
                taken = [
                    (key, self._waiting.pop(key))
                    for key in list(itertools.islice(self._waiting, most))
                ]
        by_time: dict[float, list[tuple[str, Sequence[Solution]]]] = {}
        for key, (now, solutions) in sorted(taken, key=lambda each: each[1][0]):
            by_time.setdefault(now, []).append((key, solutions))
        times = list(by_time)
        size = max(1, -(-len(times) // _PORTIONS))
        return [_together(times[at : at + size], by_time) for at in range(0, len(times), size)]


def _together(
    times: list[float], by_time: Mapping[float, list[tuple[str, Sequence[Solution]]]]
) -> Pushed:
    pushed = Pushed([], [], times[-1])
    for time in times:
        for key, solutions in by_time[time]:
            pushed.asked.append(key)
            pushed.solutions.extend(solutions)
    return pushed
