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
    """Some threads with a bounded queue; work beyond the bound is refused at once."""

    def __init__(self, name: str, *, threads: int, most: int) -> None:
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix=f"acquatop-{name}")
        self._threads = threads
        self._most = most
        self._waiting = 0

    async def do(
        self, work: Callable[Given, Result], *args: Given.args, **more: Given.kwargs
    ) -> Result:
        """Return the result of some work; raises :class:`Problem` if the queue is full."""
        if self._waiting >= self._most + self._threads:
            raise Problem("unavailable", f"{self._most} requests wait already", retry_after=1.0)
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._pool, lambda: work(*args, **more))
        finally:
            self._waiting -= 1

    def close(self) -> None:
        """Take no more work, and drop the queue."""
        self._pool.shutdown(wait=False, cancel_futures=True)
