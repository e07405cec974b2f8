"""Thread pool with a bounded queue, for slow work beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from acquatop.app.serve.problems import Problem

Given = ParamSpec("Given")
Result = TypeVar("Result")


class BoundedExecutor:
    """Some threads with a bounded queue; work beyond the bound is refused at once.

    Work that would wait for longer than ``within`` seconds is refused then.
    """

    def __init__(
        self, name: str, *, threads: int, most: int, within: float | None = None, busy: str = ""
    ) -> None:
        self._free = asyncio.Semaphore(threads)
        self._within = within
        self._busy = busy
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"acquatop-{name}")
        self._threads = threads
        self._most = most
        self._waiting = 0

    async def do(
        self, work: Callable[Given, Result], *args: Given.args, **more: Given.kwargs
    ) -> Result:
        """Return the result of some work.

        Raises :class:`Problem` if the queue is full, or the work would wait for too long.
        """
        if self._waiting >= self._most + self._threads:
            raise Problem("unavailable", f"{self._most} requests wait already", retry_after=1.0)
        self._waiting += 1
        try:
            try:
                await asyncio.wait_for(self._free.acquire(), self._within)
            except TimeoutError:
                raise Problem("unavailable", self._busy, retry_after=1.0) from None
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._pool, lambda: work(*args, **more))
            finally:
                self._free.release()
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Take no more work, and drop the queue."""
        self._pool.shutdown(wait=False, cancel_futures=True)
