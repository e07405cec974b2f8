"""Rows of spending that a quota counts, and their storage in memory."""

from __future__ import annotations

import bisect
import math
import threading
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple, Protocol

_GRAINS = 128
"""Number of parts of a period; units within one part are merged, once there are many."""


class Spent(NamedTuple):
    """Spending at one time."""

    at: float
    items: int
    requests: int


class SpentLog(Protocol):
    """Storage of rows, called within a transaction; a failed transaction changes nothing."""

    def transaction(self, *, to_write: bool = True) -> AbstractContextManager[object]:
        """Prevent other writers during the transaction."""
        ...

    def keep(self, seconds: float) -> float:
        """Ask for rows to be kept for some seconds; return the longest time asked for."""
        ...

    def rows(self) -> list[Spent]:
        """Return the spending, oldest first."""
        ...

    def add(self, row: Spent) -> None:
        """Add a row that is no older than all others."""
        ...

    def forget(self, until: float) -> None:
        """Remove the spending up to and including a time."""
        ...

    def replace(self, rows: Sequence[Spent]) -> None:
        """Replace all rows."""
        ...


class SpentInMemory:
    """Rows that end with the process. Adding and removing cost at most O(rows added or removed).

    >>> log = SpentInMemory()
    >>> log.add(Spent(1.0, items=10, requests=1)); log.add(Spent(2.0, items=5, requests=1))
    >>> log.forget(until=1.0)
    >>> log.rows()
    [Spent(at=2.0, items=5, requests=1)]
    """

    def __init__(self) -> None:
        self._rows: list[Spent] = []
        self._kept = 0.0
        self._lock = threading.RLock()

    def transaction(self, *, to_write: bool = True) -> AbstractContextManager[object]:
        """Prevent other readers and writers during the transaction."""
        return self._lock

    def keep(self, seconds: float) -> float:
        """Ask for rows to be kept for some seconds; return the longest time asked for."""
        self._kept = max(self._kept, seconds)
        return self._kept

    def rows(self) -> list[Spent]:
        """Return the spending, oldest first."""
        return self._rows

    def add(self, row: Spent) -> None:
        """Add a row that is no older than all others."""
        self._rows.append(row)

    def forget(self, until: float) -> None:
        """Remove the spending up to and including a time."""
        del self._rows[: bisect.bisect_right(self._rows, until, key=lambda row: row.at)]

    def replace(self, rows: Sequence[Spent]) -> None:
        """Replace all rows."""
        self._rows = list(rows)


def came_back_until(now: float, seconds: float) -> float:
    """Return the latest time whose spending has come back by ``now``, exact to the last bit.

    >>> came_back_until(now=1000.0, seconds=900.0)
    100.0
    """
    until = now - seconds
    # Rounding up would let a unit come back too early.
    return until if math.fsum((now, -seconds, -until)) >= 0 else math.nextafter(until, -math.inf)


def comes_back_at(at: float, seconds: float) -> float:
    """Return the first time at which spending at ``at`` has come back, exact to the last bit."""
    back = at + seconds
    return back if math.fsum((back, -at, -seconds)) >= 0 else math.nextafter(back, math.inf)


def seconds_until(then: float, now: float) -> float:
    """Return the wait after which it is ``then`` or later, never earlier."""
    wait = max(0.0, then - now)
    return wait if now + wait >= then else wait + max(math.ulp(wait), math.ulp(then))


def thinned(rows: Iterable[Spent], periods: Iterable[float], now: float) -> list[Spent]:
    """Return rows, oldest first, merged to at most some hundred per period.

    A unit only moves to a later time, by at most a 128th of the shortest period that it still
    counts for.

    >>> thinned([Spent(0.0, 1, 1), Spent(0.5, 2, 1), Spent(90.0, 4, 1)], periods=[100.0], now=99.0)
    [Spent(at=0.5, items=3, requests=2), Spent(at=90.0, items=4, requests=1)]
    """
    ascending = sorted(periods)
    merged: list[Spent] = []
    first = -math.inf
    for row in rows:
        age = now - row.at
        period = next((each for each in ascending if age <= each), ascending[-1])
        if merged and row.at - first < period / _GRAINS:
            last = merged[-1]
            merged[-1] = Spent(row.at, last.items + row.items, last.requests + row.requests)
        else:
            merged.append(row)
            first = row.at
    return merged
