"""Ledger of open connections: a bounded number in each stage, in all and per client address."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator
from typing import Protocol

from acquatop.app.serve.limits import Limits
from acquatop.app.serve.problems import Problem
from replica.clocks import Clock

LAST_SECONDS = 2.0
"""Time for a client to read a last response, before its connection is cut."""

RETRY_SECONDS = 5.0
"""Seconds after which a refused client may come again."""


class Stage(enum.Enum):
    """Stage of a connection."""

    FRESH = "fresh"
    """No byte has come yet."""
    IDLE = "idle"
    """Between two requests."""
    HEAD = "head"
    """A part of a request's headers has come."""
    BODY = "body"
    """A part of a request's body has come, and its response is not complete."""
    BUSY = "busy"
    """A request is here, and its response is not complete."""
    LAST = "last"
    """The last response has been written; the rest of the request is discarded."""


_IDLE = (Stage.FRESH, Stage.IDLE)
_UNFINISHED = (Stage.HEAD, Stage.BODY)


class Closable(Protocol):
    """A connection in the ledger."""

    def cut(self) -> None:
        """Close the connection."""


class Connections:
    """Connections by stage and address, in the order in which they came into their stage.

    Each operation is O(1), except for the connections that it closes or yields. Not safe for
    several threads.
    """

    def __init__(self, limits: Limits, *, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._address: dict[Closable, str] = {}
        self._stage: dict[Closable, Stage] = {}
        self._since: dict[Stage, dict[Closable, float]] = {stage: {} for stage in Stage}
        self._idle_of: dict[str, dict[Closable, None]] = {}
        self._unfinished_of: Counter[str] = Counter()
        self._all_of: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._stage)

    def count(self, *stages: Stage) -> int:
        """Return the number of connections in some stages."""
        return sum(len(self._since[stage]) for stage in stages)

    def enter(self, one: Closable, address: str) -> Problem | None:
        """Add a connection; return a problem if there are too many, and none is idle."""
        problem = None
        limits = self._limits
        if self._all_of[address] >= limits.connections_per_address:
            problem = self._make_room(self._idle_of.get(address, {}), "too-many-requests")
        elif len(self) >= limits.connections:
            problem = self._make_room(self._longest_idle(), "unavailable")
        self._address[one] = address
        self._all_of[address] += 1
        self._put(one, Stage.FRESH)
        self._trim(address)
        return problem

    def _make_room(
        self, idle: dict[Closable, float] | dict[Closable, None], kind: str
    ) -> Problem | None:
        if not idle:
            return Problem(kind, "too many connections are open", retry_after=RETRY_SECONDS)
        next(iter(idle)).cut()
        return None

    def _longest_idle(self) -> dict[Closable, float]:
        return self._since[Stage.IDLE] or self._since[Stage.FRESH]

    def move(self, one: Closable, stage: Stage) -> Problem | None:
        """Note a connection's stage; return a problem if too many requests are unfinished."""
        before = self._stage.get(one)
        if before is None or before is stage:
            return None
        address = self._address[one]
        self._take(one)
        self._put(one, stage)
        if stage in _IDLE:
            self._trim(address)
        elif stage in _UNFINISHED and before not in _UNFINISHED:
            return self._too_many_unfinished(address)
        return None

    def _too_many_unfinished(self, address: str) -> Problem | None:
        said = "too many requests are unfinished"
        if self._unfinished_of[address] > self._limits.unfinished_per_address:
            return Problem("too-many-requests", said, retry_after=RETRY_SECONDS)
        if self.count(*_UNFINISHED) > self._limits.unfinished:
            return Problem("unavailable", said, retry_after=RETRY_SECONDS)
        return None

    def _trim(self, address: str) -> None:
        """Close those that are idle for longest, if there are too many."""
        if len(self._idle_of.get(address, ())) > self._limits.idle_per_address:
            next(iter(self._idle_of[address])).cut()
        elif self.count(*_IDLE) > self._limits.idle:
            next(iter(self._longest_idle())).cut()

    def leave(self, one: Closable) -> None:
        """Remove a connection; safe to call again."""
        if one in self._stage:
            self._take(one)
            del self._stage[one]
            _less(self._all_of, self._address.pop(one))

    def overdue(self) -> Iterator[tuple[Closable, Stage]]:
        """Yield the connections that have been in their stage for too long."""
        now = self._clock()
        for stage, seconds in (
            (Stage.FRESH, self._limits.header_seconds),
            (Stage.HEAD, self._limits.header_seconds),
            (Stage.LAST, LAST_SECONDS),
        ):
            for one, since in list(self._since[stage].items()):
                if now - since < seconds:
                    break
                yield one, stage

    def _put(self, one: Closable, stage: Stage) -> None:
        address = self._address[one]
        self._stage[one] = stage
        self._since[stage][one] = self._clock()
        if stage in _IDLE:
            self._idle_of.setdefault(address, {})[one] = None
        elif stage in _UNFINISHED:
            self._unfinished_of[address] += 1

    def _take(self, one: Closable) -> None:
        address, stage = self._address[one], self._stage[one]
        del self._since[stage][one]
        if stage in _IDLE:
            del self._idle_of[address][one]
            if not self._idle_of[address]:
                del self._idle_of[address]
        elif stage in _UNFINISHED:
            _less(self._unfinished_of, address)


def _less(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
