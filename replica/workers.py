"""Daemon threads for requests, limited in number."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

Work = Callable[[], None]

_IDLE_SECONDS = 10.0
"""Seconds that an idle thread is kept."""


class Workers:
    """Pool of at most ``most`` threads, reused. A request that hangs occupies one until it ends.

    >>> workers, done = Workers(1), threading.Event()
    >>> workers.reserve(0.0), workers.reserve(0.0)
    (True, False)
    >>> workers.start(done.set)
    >>> done.wait(10), workers.reserve(10)
    (True, True)
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._free = threading.Semaphore(most)
        self._work: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    def mailbox(self) -> queue.SimpleQueue[Any]:
        """Return a new queue for what the work brings."""
        return queue.SimpleQueue()

    def reserve(self, timeout: float) -> bool:
        """Reserve a thread, waiting at most ``timeout`` seconds for one to be free."""
        return (
            self._free.acquire(timeout=timeout)
            if timeout > 0
            else self._free.acquire(blocking=False)
        )

    def release(self) -> None:
        """Give back a reservation that is not needed."""
        self._free.release()

    def start(self, work: Work) -> None:
        """Run some work, which must not raise, in the reserved thread; then the thread is free."""
        with self._lock:
            has_idle = self._idle > 0
            self._idle -= has_idle
        self._work.put(work)
        if not has_idle:
            threading.Thread(target=self._run, name="acquatop-refresh", daemon=True).start()

    def _run(self) -> None:
        while (work := self._next()) is not None:
            with suppress(BaseException):  # work reports its failures; the thread is needed again
                work()
            with self._lock:
                self._idle += 1
            self._free.release()

    def _next(self) -> Work | None:
        while True:
            try:
                return self._work.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    # If the count of idle threads is 0, this one has just been chosen: its work is
                    # coming.
                    if self._idle > 0:
                        self._idle -= 1
                        return None
