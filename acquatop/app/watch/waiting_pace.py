"""Pace of messages about waits: soon at first, then at growing intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from acquatop.engine.waiting.kinds import Waiting
from replica.clocks import Clock

FIRST_SECONDS, AGAIN_SECONDS, LONGEST_SECONDS = 2.0, 10.0, 600.0
"""Age of a wait at its first message; interval to the second one, which doubles; its maximum."""
MOST_NAMES = 3
"""Number of queries named in a message; the others are counted."""


class WaitingGroup(NamedTuple):
    """Queries that wait for the same thing."""

    queries: tuple[str, ...]
    waiting: Waiting

    @property
    def names(self) -> str:
        """The queries' names, the first of many.

        >>> wait = Waiting(kind="bad", since=0.0, text="")
        >>> WaitingGroup(("a", "b", "c", "d", "e"), wait).names
        'a, b, c and 2 more'
        """
        more = len(self.queries) - MOST_NAMES
        return ", ".join(self.queries[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


@dataclass
class _Told:
    """State of one wait: since when it is seen, and the times of the last and the next message."""

    seen_at: float | None = None
    told_at: float | None = None
    interval: float = AGAIN_SECONDS


class WaitingPace:
    """Choice of the waits that are due for a message. Not safe for several threads at once.

    A wait that ends is forgotten, but if it comes back, it is not told twice within ten seconds.
    Memory O(kinds of waits and streams).

    >>> now = 0.0
    >>> pace = WaitingPace(clock=lambda: now)
    >>> waits = {"q": Waiting(kind="silent", since=0.0, text="nothing comes")}
    >>> list(pace.due(waits))
    []
    >>> now = 2.0
    >>> [group.queries for group in pace.due(waits)], list(pace.due(waits))
    ([('q',)], [])
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._told: dict[tuple[str, str], _Told] = {}

    def due(self, waits: Mapping[str, Waiting]) -> Iterator[WaitingGroup]:
        """Yield the waits that are due for a message now."""
        now = self._clock()
        groups = {group.waiting.key: group for group in grouped(waits)}
        for key, told in self._told.items():
            if key not in groups:
                told.seen_at, told.interval = None, AGAIN_SECONDS
        for key, group in groups.items():
            told = self._told.setdefault(key, _Told())
            told.seen_at = now if told.seen_at is None else told.seen_at
            if self._is_due(told, now):
                yield group

    def _is_due(self, told: _Told, now: float) -> bool:
        assert told.seen_at is not None
        if now - told.seen_at < FIRST_SECONDS:
            return False
        if told.told_at is not None:
            if now - told.told_at < told.interval:
                return False
            told.interval = min(2 * told.interval, LONGEST_SECONDS)
        told.told_at = now
        return True


def grouped(waits: Mapping[str, Waiting]) -> list[WaitingGroup]:
    """Return the queries that wait for the same thing together."""
    found: dict[tuple[str, str], WaitingGroup] = {}
    for name, waiting in waits.items():
        before = found.get(waiting.key)
        names = () if before is None else before.queries
        found[waiting.key] = WaitingGroup((*names, name), before.waiting if before else waiting)
    return list(found.values())
