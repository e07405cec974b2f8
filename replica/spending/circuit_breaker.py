"""Circuit breaker for a remote that fails."""

from __future__ import annotations

import math
import random as chance
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

_LONGEST_RETRY_AFTER = 3600.0
_LATE = -1


class CircuitBreaker:
    """Circuit breaker: allows any number of requests, none, or one to probe the remote.

    *Closed*: any number; ``failures`` failures in a row open it. *Open*: none, for a wait that
    doubles from ``first_wait`` to ``longest_wait`` each time it opens again; of this, a random
    share between half and all is waited. *Half-open* after that: one request at a time, the probe.
    Its success closes the breaker and resets its counts, its failure opens it again. A probe
    without an answer for ``longest_wait`` seconds is considered lost: another is allowed.

    A result counts only in the state in which its request was sent: :meth:`sent` returns a number
    to pass in with the result. Answers to requests sent in an earlier state change nothing. So ten
    requests that time out together open it once, and a late success of a request sent before does
    not prove that the remote is back. A result without a number counts for the present state; but
    while the breaker is open nothing is sent, so the result is late and changes nothing.

    A remote that sends ``retry_after`` is not asked for at least that long, up to an hour,
    regardless of when the request was sent and how many have failed.

    All operations are O(1) and thread-safe. For exactly one probe, a request must be announced by
    :meth:`sent` before other threads ask how many are allowed.

    >>> now = 0.0
    >>> breaker = CircuitBreaker(clock=lambda: now, random=lambda: 1.0, failures=2, first_wait=1.0)
    >>> for _ in range(2):
    ...     breaker.failed(request=breaker.sent())
    >>> breaker.allowed(), breaker.wait
    (0, 1.0)
    >>> now = 1.0
    >>> breaker.allowed()
    1
    >>> probe = breaker.sent()
    >>> breaker.allowed()
    0
    >>> breaker.failed(request=probe)
    >>> breaker.wait
    2.0
    >>> now = 3.0
    >>> breaker.succeeded(breaker.sent())
    >>> breaker.allowed() > 1
    True
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        random: Callable[[], float] = chance.random,
        failures: int = 3,
        first_wait: float = 1.0,
        longest_wait: float = 60.0,
    ) -> None:
        self._clock = clock
        self._random = random
        self._failures_to_open = failures
        self._first_wait = first_wait
        self._longest_wait = longest_wait
        self._lock = threading.Lock()
        self._state = 0
        """Number of state changes so far."""
        self._failures = 0
        self._next_wait = first_wait
        self._open_until: float | None = None
        self._probe_sent_at: float | None = None

    def allowed(self) -> int:
        """Return how many requests may be sent now."""
        with self._lock:
            return self._allowed()

    def sent(self) -> int:
        """Note that a request is sent; return the number to pass in with its result."""
        with self._lock:
            return self._sent()

    def succeeded(self, request: int | None = None) -> None:
        """Note that a request was answered."""
        with self._lock:
            if not self._is_late(request):
                self._failures, self._next_wait = 0, self._first_wait
                self._open_until = self._probe_sent_at = None

    def failed(self, retry_after: float | None = None, request: int | None = None) -> None:
        """Note that a request failed, and the wait that the remote asked for, if any."""
        asked = (
            0.0
            if retry_after is None or not retry_after > 0
            else min(retry_after, _LONGEST_RETRY_AFTER)
        )
        with self._lock:
            if self._is_late(request):
                if asked:
                    self._open(asked)
                return
            self._failures += 1
            if asked or self._open_until is not None or self._failures >= self._failures_to_open:
                self._open(max(asked, self._next_wait * (0.5 + 0.5 * self._random())))
                self._next_wait = min(self._longest_wait, 2 * self._next_wait)

    def rest(self, seconds: float) -> None:
        """Pause for a time, up to an hour, as the remote would refuse. Counts no failure."""
        with self._lock:
            if seconds > 0:
                self._open(min(seconds, _LONGEST_RETRY_AFTER))

    @property
    def wait(self) -> float:
        """Seconds during which no request is allowed; also 0 while a probe is under way."""
        with self._lock:
            return (
                max(0.0, self._open_until - self._clock()) if self._open_until is not None else 0.0
            )

    @property
    def is_closed(self) -> bool:
        """True if the remote is considered healthy."""
        with self._lock:
            return self._open_until is None

    def state(self) -> dict[str, Any]:
        """Return the state as plain values, with the remaining wait, not its end."""
        with self._lock:
            wait = None if self._open_until is None else max(0.0, self._open_until - self._clock())
            return {"failures": self._failures, "next wait": self._next_wait, "wait": wait}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; results of requests sent before are late."""
        wait = state["wait"]
        with self._lock:
            self._failures, self._next_wait = state["failures"], state["next wait"]
            self._open_until = None if wait is None else self._clock() + wait
            self._probe_sent_at = None
            self._state += 1

    def _allowed(self) -> int:
        if self._open_until is None:
            return sys.maxsize
        now = self._clock()
        if now < self._open_until:
            return 0
        is_waiting = (
            self._probe_sent_at is not None and now < self._probe_sent_at + self._longest_wait
        )
        return 0 if is_waiting else 1

    def _sent(self) -> int:
        if self._open_until is None:
            return self._state
        now = self._clock()
        if now < self._open_until:
            # Another thread opened it after this one had asked: count the request as sent before.
            return _LATE
        # A probe is a state of its own: earlier requests, lost probes included, are late from now
        # on.
        self._state += 1
        self._probe_sent_at = now
        return self._state

    def _open(self, wait: float) -> None:
        self._open_until = max(self._open_until or -math.inf, self._clock() + wait)
        self._probe_sent_at = None
        self._state += 1

    def _is_late(self, request: int | None) -> bool:
        if request is not None:
            return request != self._state
        return self._open_until is not None and self._probe_sent_at is None
