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

    Waiting work is refused if no other is done within ``within`` seconds.
    """

    def __init__(
        self, name: str, *, threads: int, most: int, within: float | None = None, busy: str = ""
    ) -> None:
        self._free = asyncio.Semaphore(threads)
        self._within = within
        self._busy = busy
        self._done = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"acquatop-{name}")
        self._threads = threads
        self._most = most
        self._waiting = 0

    async def do(
        self, work: Callable[Given, Result], *args: Given.args, **more: Given.kwargs
    ) -> Result:
        """Return the result of some work.

        Raises :class:`Problem` if the queue is full, or others take too long.
        """
        if self._waiting >= self._most + self._threads:
            raise Problem("unavailable", f"{self._most} requests wait already", retry_after=1.0)
        self._waiting += 1
        try:
            await self._wait()
            try:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self._pool, lambda: work(*args, **more))
            finally:
                self._done += 1
                self._free.release()
        finally:
            self._waiting -= 1

    async def _wait(self) -> None:
        """Wait for a free thread, as long as work gets done."""
        acquiring = asyncio.ensure_future(self._free.acquire())
        try:
            while not acquiring.done():
                done = self._done
                await asyncio.wait((acquiring,), timeout=self._within)
                if not acquiring.done() and self._done == done:
                    raise Problem("unavailable", self._busy, retry_after=1.0)
        except BaseException:
            if not acquiring.cancel():
                self._free.release()
            raise

    def close(self) -> None:
        """Take no more work, and drop the queue."""
        self._pool.shutdown(wait=False, cancel_futures=True)
