"""How much a remote allows everyone together to spend in periods of wall-clock time."""

from __future__ import annotations

import math
import sys
import time as clocks
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

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
from replica.store.snapshot import State, pack, reading, unpack

_KIND, _VERSION = "quota", 1

UNLIMITED = sys.maxsize
"""How much is left where there is no limit."""

_ROWS_TOLD_APART = 256


class Quota:
    """Never more than each limit's amount in *any* window of its length, the start included and the end not.

    Each unit comes back one period after it was spent. One quota is shared by all queries on a service, in any
    threads, and with a ledger by all processes that use the same file and service, at once or after each other.

    Without a ledger the clock is the monotonic one, which never jumps. With a ledger it is the wall clock, which is the
    only one that processes share: while it is set back, time stands still here, so units come back late and never
    early; when it is set forward, it is believed, but what this process itself has spent must have come back by the
    monotonic clock as well. A clock given as ``time`` stands for both.

    What is counted is when requests were allowed. A remote counts when they arrive: where both must agree to the last
    request, ``margin`` adds to each period the longest time that a request may take to get there.

    Taking costs O(rows), of which there are at most some hundreds: where more is spent in a period, what was spent at
    nearly the same time comes back together, with the last of it, at most 1/128 of the period late.

    >>> now = 0.0
    >>> quota = Quota([Limit.parse("2 requests per 1m"), Limit.parse("150 items per 1h")], time=lambda: now)
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
    ) -> None:
        self.limits = tuple(limits)
        self.service = service
        self._periods = tuple(limit.seconds + margin for limit in self.limits)
        self._time = time or (clocks.monotonic if ledger is None else clocks.time)
        self._ours = Quota(self.limits, margin=margin) if ledger is not None and time is None else None
        """What this process has spent, by the monotonic clock."""
        self._log: SpentLog = SpentInMemory() if ledger is None else ledger.log_of(service)
        self._most_rows = _ROWS_TOLD_APART * (1 + len(self.limits))
        self._latest = -math.inf
        self._wall = wall
        self._is_on_disk = ledger is not None
        self._taken = 0
        """How often something was taken, before a restart included."""
        self._brought: tuple[int, tuple[Spent, ...]] = 0, ()
        """What another process had taken until when it ended: how often, and the rows of it."""

    def left(self) -> tuple[int, int]:
        """Return how many items and requests may be spent now. Raises LedgerError."""
        if not self.limits:
            return UNLIMITED, UNLIMITED
        with self._log.transaction(to_write=False):
            rows = self._log.rows()
            free = self._free(rows, self._now(rows))
        items, requests = self._ours.left() if self._ours else (UNLIMITED, UNLIMITED)
        return min(items, self._least(free, "items")), min(requests, self._least(free, "requests"))

    def take(self, items: int, requests: int) -> bool:
        """Spend all of this, or nothing if any limit forbids it, and say whether it was spent. Raises LedgerError."""
        _check(items, requests)
        if not self.limits:
            return True
        with self._log.transaction():
            rows = self._log.rows()
            now = self._now(rows)
            free = self._free(rows, now)
            if items > self._least(free, "items") or requests > self._least(free, "requests"):
                return False
            if self._ours and not self._ours.take(items, requests):
                return False
            self._tidy(rows, now)
            self._log.add(Spent(now, items, requests))
            self._taken += 1
        return True

    def wait(self, items: int, requests: int) -> float:
        """Return in how many seconds this much can be spent if nothing else is: inf if never. Raises LedgerError."""
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
        # The clock itself, not the latest time known: where it was set back, it has further to go.
        wait = seconds_until(back, self._time())
        return max(wait, self._ours.wait(items, requests)) if self._ours else wait

    def snapshot(self) -> bytes:
        """Return what has been spent and counts still; nothing where a ledger has it."""
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
        return pack(_KIND, _VERSION, State({"taken": self._taken, "now": now, "wall": self._wall()}, columns))

    def resume(self, snapshot: bytes) -> None:
        """Count what was spent in another process; raises SnapshotError for any other bytes.

        It comes back as time has gone on by the wall clock since then; nothing comes back early if that was set back.
        Every query that shares the quota may do this with its own snapshot: the latest counts, and that once.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            columns = (state.columns[name].tolist() for name in ("at", "items", "requests"))
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
        """Return the latest time that anyone has known."""
        self._latest = max(self._latest, self._time(), rows[-1].at if rows else self._latest)
        return self._latest

    def _free(self, rows: Sequence[Spent], now: float) -> list[int]:
        """Return what each limit leaves: less than nothing where it was lowered after it was spent."""
        free = []
        for limit, period in zip(self.limits, self._periods, strict=True):
            until = came_back_until(now, period)
            free.append(limit.amount - sum(_units(row, limit) for row in rows if row.at > until))
        return free

    def _least(self, free: Sequence[int], unit: str) -> int:
        ours = (left for left, limit in zip(free, self.limits, strict=True) if limit.unit == unit)
        return max(0, min(ours, default=UNLIMITED))

    def _back(self, limit: Limit, period: float, rows: Sequence[Spent], now: float, wanted: int) -> float:
        """Return when a limit will leave what is wanted."""
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
        """Forget what counts for nobody, and merge the rest if it is a lot."""
        longest = self._log.keep(max(self._periods))
        if rows and rows[0].at <= (until := came_back_until(now, longest)):
            self._log.forget(until)
        if len(rows) >= self._most_rows:
            self._log.replace(thinned(self._log.rows(), (*self._periods, longest), now))


def _moved(at: float, then: float, now: float, elapsed: float) -> float:
    """Return a time that is as long before ``now`` as it was before ``then``, and what has elapsed; never earlier."""
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
