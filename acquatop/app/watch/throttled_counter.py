"""Rate limit for reports of frequent events."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

from replica.clocks import Clock

Key = TypeVar("Key", bound=Hashable)


class ThrottledCounter(Generic[Key]):
    """Count frequent events and report each kind at most once per interval, the first at once.

    Time O(1), memory O(kinds). Not safe for several threads at once.

    >>> now = 0.0
    >>> seldom = ThrottledCounter(10.0, clock=lambda: now)
    >>> seldom.add("late", 2), seldom.add("late", 3), seldom.add("bad", 1)
    (2, None, 1)
    >>> now = 10.0
    >>> seldom.add("late", 1), seldom.add("late", 5), list(seldom.rest())
    (4, None, [('late', 5)])
    """

    def __init__(self, seconds: float, *, clock: Clock) -> None:
        self._seconds = seconds
        self._clock = clock
        self._sums: dict[Key, int] = {}
        self._told: dict[Key, float] = {}

    def add(self, kind: Key, amount: int = 1) -> int | None:
        """Return a kind's count since its last report if it may be reported now; else None."""
        total = self._sums.get(kind, 0) + amount
        now = self._clock()
        if kind in self._told and now - self._told[kind] < self._seconds:
            self._sums[kind] = total
            return None
        self._sums.pop(kind, None)
        self._told[kind] = now
        return total

    def forget(self, is_gone: Callable[[Key], bool]) -> dict[Key, int]:
        """Forget some kinds; return their counts that have not been reported yet. O(kinds)."""
        for kind in [each for each in self._told if is_gone(each)]:
            del self._told[kind]
        return {kind: self._sums.pop(kind) for kind in list(self._sums) if is_gone(kind)}

    def rest(self) -> Iterator[tuple[Key, int]]:
        """Yield the counts that have not been reported yet, and forget them."""
        while self._sums:
            yield self._sums.popitem()
