"""Log of refused requests and connections: a line per reason and interval."""

from __future__ import annotations

import logging
import threading
import time

from starlette.types import Scope

from acquatop.app.serve.problems import KINDS, Problem
from acquatop.app.watch.throttled_counter import ThrottledCounter
from replica.clocks import Clock

INTERVAL = 10.0
"""Least number of seconds between two lines about the same reason."""

LIMITS = frozenset(
    "foreign-origin unknown-host timeout too-large target-too-long too-many-requests "
    "headers-too-large unavailable".split()
)
"""Kinds of problems that are logged: those of limits, and of other sites."""

_LOGGER = logging.getLogger(__name__)


class Refusals:
    """Counter of refusals that logs each kind at most once per interval. Safe for threads.

    No line contains a part of a request.
    """

    def __init__(self, *, clock: Clock = time.monotonic) -> None:
        self._lock = threading.Lock()
        self._seldom: ThrottledCounter[str] = ThrottledCounter(INTERVAL, clock=clock)
        self._details: dict[str, str] = {}

    def note(self, problem: Problem, address: str) -> None:
        """Count a refusal, and log it unless its kind was logged just now."""
        with self._lock:
            self._details[problem.kind] = f"{problem.detail}; the last for {address or 'a client'}"
            times = self._seldom.add(problem.kind)
        if times is not None:
            self._tell(problem.kind, times)

    def close(self) -> None:
        """Log the pending counts."""
        with self._lock:
            rest = list(self._seldom.rest())
        for kind, times in rest:
            self._tell(kind, times)

    def _tell(self, kind: str, times: int) -> None:
        _LOGGER.warning(
            "refused %d times: %s (%d): %s",
            times,
            kind,
            KINDS[kind].status,
            self._details[kind],
        )


def address_of(scope: Scope) -> str:
    """Return the address of a request's client."""
    return str((scope.get("client") or ("",))[0])


def note_limit(refusals: Refusals, problem: Problem, scope: Scope) -> None:
    """Log a problem if it is about a limit, or about another site."""
    if problem.kind in LIMITS:
        refusals.note(problem, address_of(scope))
