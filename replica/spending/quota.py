"""Quota of a remote, shared by all queries, over periods of wall-clock time."""

from __future__ import annotations

import math
import sys
import time as clocks
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from replica.snapshot import State, pack, reading, unpack
from replica.spending.ledger import Ledger
from replica.spending.limit import Limit
from replica.spending.spent import (
    Spent,
    SpentInMemory,
    SpentLog,
    came_back_until,
    comes_back_at,
    seconds_until,
    thinned,
)

_KIND, _VERSION = "quota", 1

UNLIMITED = sys.maxsize
"""Amount left if there is no limit."""

_ROWS_TOLD_APART = 256


class Quota:
    """Rate limits: at most each amount in *any* window of its length, start included, end excluded.

    Each unit comes back one period after it was spent. All queries on a service share one quota, in
    any threads. With a ledger, all processes that use the same file and service share it,
    concurrently or one after another.

    Without a ledger the clock is ``steady``, which is monotonic. With a ledger it is the ledger's,
    which processes share. One given as ``time`` replaces either. If that is set back, time stands
    still here, so units come back late and never early. ``wall`` says how long no process ran.

    The quota counts when requests were allowed; a remote counts when they arrive. If both must
    agree to the last request, ``margin`` adds to each period the longest time that a request may
    take to arrive.

    Taking costs O(rows), of which there are at most some hundreds. If more is spent in a period,
    spending at nearly the same time comes back together, with the last of it, at most 1/128 of the
    period late.

    >>> now = 0.0
    >>> quota = Quota(
    ...     [Limit.parse("2 requests per 1m"), Limit.parse("150 items per 1h")], time=lambda: now
    ... )
    >>> quota.take(items=100, requests=1)
    True
    >>> quota.left()
    (50, 1)
    >>> quota.take(items=100, requests=1)
    False
    >>> quota.wait(items=100, requests=1)
    3600.0
    >>> now = 60.0
    >>> quota.left()
    (50, 2)
    """

    def __init__(
        self,
        limits: Iterable[Limit] = (),
        *,
        time: Callable[[], float] | None = None,
        ledger: Ledger | None = None,
        service: str = "",
        margin: float = 0.0,
        wall: Callable[[], float] = clocks.time,
        steady: Callable[[], float] = clocks.monotonic,
    ) -> None:
        self.limits = tuple(limits)
        self.service = service
        self._periods = tuple(limit.seconds + margin for limit in self.limits)
        self._time = time or (steady if ledger is None else ledger.now)
        self._log: SpentLog = SpentInMemory() if ledger is None else ledger.log_of(service)
        self._most_rows = _ROWS_TOLD_APART * (1 + len(self.limits))
        self._latest = -math.inf
        self._wall = wall
        self._is_on_disk = ledger is not None
        self._taken = 0
        """Number of takes, including those before a restart."""
        self._brought: tuple[int, tuple[Spent, ...]] = 0, ()
        """Spending that a snapshot brought from another process: number of takes, and rows."""

    def left(self) -> tuple[int, int]:
        """Return how many items and requests may be spent now. Raises LedgerError."""
        if not self.limits:
            return UNLIMITED, UNLIMITED
        with self._log.transaction(to_write=False):
            rows = self._log.rows()
            free = self._free(rows, self._now(rows))
        return self._least(free, "items"), self._least(free, "requests")

    def paces(self, seconds: float) -> Iterator[tuple[Limit, float, int]]:
        """Yield each limit, what it allows in so many seconds on average, and what is left of it.

        Raises LedgerError.
        """
        if not self.limits:
            return
        with self._log.transaction(to_write=False):
            rows = self._log.rows()
            free = self._free(rows, self._now(rows))
        for limit, period, left in zip(self.limits, self._periods, free, strict=True):
            yield limit, limit.amount * seconds / period, max(0, left)

    def take(self, items: int, requests: int) -> bool:
        """Spend all of this, or nothing if any limit forbids it; return True if spent.

        Raises LedgerError.
        """
        _check(items, requests)
        if not self.limits:
            return True
        with self._log.transaction():
            rows = self._log.rows()
            now = self._now(rows)
            free = self._free(rows, now)
            if items > self._least(free, "items") or requests > self._least(free, "requests"):
                return False
            self._tidy(rows, now)
            self._log.add(Spent(now, items, requests))
            self._taken += 1
        return True

    def wait(self, items: int, requests: int) -> float:
        """Return the seconds until this much can be spent, if nothing else is: inf if never.

        Raises LedgerError.
        """
        _check(items, requests)
        if not self.limits:
            return 0.0
        with self._log.transaction(to_write=False):
            rows = self._log.rows()
            now = self._now(rows)
            back = max(
                self._back(limit, period, rows, now, items if limit.unit == "items" else requests)
                for limit, period in zip(self.limits, self._periods, strict=True)
            )
        # Use the clock, not the latest known time: if it was set back, it has further to go.
        return seconds_until(back, self._time())

    def snapshot(self) -> bytes:
        """Return the spending that still counts; nothing if a ledger holds it."""
        rows: list[Spent] = []
        with self._log.transaction(to_write=False):
            known = self._log.rows() if self.limits and not self._is_on_disk else []
            now = self._now(known)
            if self.limits:
                until = came_back_until(now, max(self._periods))
                rows = [row for row in known if row.at > until]
        columns = {
            "at": np.array([row.at for row in rows], np.float64),
            "items": np.array([row.items for row in rows], np.int64),
            "requests": np.array([row.requests for row in rows], np.int64),
        }
        return pack(
            _KIND,
            _VERSION,
            State({"taken": self._taken, "now": now, "wall": self._wall()}, {"rows": columns}),
        )

    def resume(self, snapshot: bytes) -> None:
        """Count the spending of another process; raises SnapshotError for any other bytes.

        It comes back by the wall-clock time since then; nothing comes back early if that clock was
        set back. Every query that shares the quota may call this with its own snapshot: only the
        latest counts, and only once.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            columns = (state.tables["rows"][name].tolist() for name in ("at", "items", "requests"))
            rows, taken = list(map(Spent, *columns)), state.settings["taken"]
            then, elapsed = state.settings["now"], max(0.0, self._wall() - state.settings["wall"])
        with self._log.transaction():
            mine, (before, brought) = self._log.rows(), self._brought
            if taken <= before:
                return
            now = self._now(mine)
            moved = [row._replace(at=_moved(row.at, then, now, elapsed)) for row in rows]
            self._log.replace(sorted([*moved, *_without(mine, brought)], key=lambda row: row.at))
            self._brought = taken, tuple(moved)
            self._taken += taken - before

    def _now(self, rows: Sequence[Spent]) -> float:
        """Return the latest time known to any process."""
        self._latest = max(self._latest, self._time(), rows[-1].at if rows else self._latest)
        return self._latest

    def _free(self, rows: Sequence[Spent], now: float) -> list[int]:
        """Return the rest of each limit: negative if it was lowered after spending."""
        free = []
        for limit, period in zip(self.limits, self._periods, strict=True):
            until = came_back_until(now, period)
            free.append(limit.amount - sum(_units(row, limit) for row in rows if row.at > until))
        return free

    def _least(self, free: Sequence[int], unit: str) -> int:
        ours = (left for left, limit in zip(free, self.limits, strict=True) if limit.unit == unit)
        return max(0, min(ours, default=UNLIMITED))

    def _back(
        self, limit: Limit, period: float, rows: Sequence[Spent], now: float, wanted: int
    ) -> float:
        """Return the time at which a limit will have the wanted amount left."""
        if wanted > limit.amount:
            return math.inf
        until = came_back_until(now, period)
        counting = [row for row in rows if row.at > until]
        missing = wanted - limit.amount + sum(_units(row, limit) for row in counting)
        back = now
        for row in counting:
            if missing <= 0:
                break
            missing -= _units(row, limit)
            back = comes_back_at(row.at, period)
        return back

    def _tidy(self, rows: Sequence[Spent], now: float) -> None:
        """Remove rows that count for nobody, and merge the others if there are many."""
        longest = self._log.keep(max(self._periods))
        if rows and rows[0].at <= (until := came_back_until(now, longest)):
            self._log.forget(until)
        if len(rows) >= self._most_rows:
            self._log.replace(thinned(self._log.rows(), (*self._periods, longest), now))


def _moved(at: float, then: float, now: float, elapsed: float) -> float:
    """Return a time moved from ``then`` to ``now``, less what has elapsed; rounded up."""
    terms = (now, -then, at, -elapsed)
    moved = math.fsum(terms)
    return min(now, moved if math.fsum((*terms, -moved)) <= 0 else math.nextafter(moved, math.inf))


def _without(rows: Iterable[Spent], brought: Iterable[Spent]) -> Iterator[Spent]:
    left = Counter(brought)
    for row in rows:
        if left[row]:
            left[row] -= 1
        else:
            yield row


def _units(row: Spent, limit: Limit) -> int:
    return row.items if limit.unit == "items" else row.requests


def _check(items: int, requests: int) -> None:
    if items < 0 or requests < 0:
        raise ValueError(f"nothing can be given back: {items} items, {requests} requests")
