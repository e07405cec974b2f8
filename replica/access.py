"""Shared access to one remote, for all callers."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from replica.clocks import Clock
from replica.remotes import RemoteError
from replica.snapshot import State, pack, reading, unpack
from replica.spending.block_size import BlockSize
from replica.spending.circuit_breaker import CircuitBreaker
from replica.workers import Workers

_KIND, _VERSION = "access", 1

CONCURRENCY = 4
"""Most concurrent requests per remote, unless its catalog entry says otherwise."""


class Access:
    """Shared state of one remote for all callers: circuit breaker, block size, worker threads.

    At most ``concurrency`` requests are under way. They run in ``workers``, or in threads of its
    own if none are given. Safe for use by several threads.
    """

    def __init__(
        self,
        *,
        concurrency: int = CONCURRENCY,
        block_size: int = 100,
        clock: Clock = time.monotonic,
        jitter: Callable[[], float] = random.random,
        workers: Workers | None = None,
    ) -> None:
        self.workers = workers or Workers(concurrency)
        self.breaker = CircuitBreaker(clock=clock, random=jitter)
        self.block_size = BlockSize(block_size)
        self._lock = threading.Lock()
        self._last_failure: str | None = None

    def succeeded(self, request: int, keys: int) -> None:
        """Note an answer to a request with ``keys`` keys; ``request`` is the breaker's number."""
        self.breaker.succeeded(request)
        with self._lock:
            self.block_size.succeeded(keys)

    def failed(self, request: int, keys: int, error: RemoteError) -> None:
        """Note that a request with ``keys`` keys has failed."""
        if error.too_large and not error.timed_out and keys > 1:
            self.breaker.succeeded(request)  # the remote is well, and only needs smaller blocks
        else:
            self.breaker.failed(error.retry_after, request)
        with self._lock:
            if error.timed_out:
                self.block_size.timed_out(keys)
            else:
                self.block_size.failed(keys, error.too_large)
            self._last_failure = str(error)

    def used_up(self, seconds: float) -> None:
        """Note that the remote allows no more requests for ``seconds`` seconds."""
        self.breaker.rest(seconds)
        with self._lock:
            self._last_failure = "no request is left of those that it allows"

    @property
    def refusal(self) -> str:
        """Reason that nothing may be asked now, if the breaker forbids it."""
        with self._lock:
            failure = self._last_failure
        return f"{failure} (it is left alone for another {self.breaker.wait:.1f} s)"

    def snapshot(self) -> bytes:
        """Return the learned state."""
        breaker = self.breaker.state()
        with self._lock:
            settings = {
                "breaker": breaker,
                "block size": self.block_size.state(),
                "failure": self._last_failure,
            }
        return pack(_KIND, _VERSION, State(settings, {}))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot; raises SnapshotError for any other bytes."""
        settings = unpack(_KIND, _VERSION, snapshot).settings
        with reading():
            self.breaker.resume(settings["breaker"])
            with self._lock:
                self.block_size.resume(settings["block size"])
                self._last_failure = settings["failure"]
