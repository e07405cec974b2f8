"""Thread pool with a bounded queue, for slow work beside the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from acquatop.app.serve.problems import Problem
from replica.workers import Workers

Given = ParamSpec("Given")
Result = TypeVar("Result")

_HAND_OVER = 10.0
"""Most seconds from the end of a thread's work until it takes more: usually microseconds."""


class BoundedExecutor:
    """Some threads with a bounded queue; work beyond the bound is refused at once.

    Waiting work is refused if no other is done within ``within`` seconds. The process may end while
    work is under way: its threads are daemons.
    """

    def __init__(
        self, *, threads: int, most: int, within: float | None = None, busy: str = ""
    ) -> None:
        self._free = asyncio.Semaphore(threads)
        self._within = within
        self._busy = busy
        self._done = 0
        # Twice as many: a thread is free a moment after its work is done.
        self._pool = Workers(2 * threads)
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
            return await self._run(lambda: work(*args, **more))
        finally:
            self._waiting -= 1

    async def _run(self, work: Callable[[], Result]) -> Result:
        """Return the result of some work, done in a thread that is free."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def run() -> None:
            try:
                result = work()
            except BaseException as error:
                tell(future.set_exception, error)
            else:
                tell(future.set_result, result)

        def tell(settle: Callable[[Any], None], outcome: Any) -> None:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(end, settle, outcome)

        def end(settle: Callable[[Any], None], outcome: Any) -> None:
            self._done += 1
            self._free.release()
            if not future.done():  # else nobody waits any more
                settle(outcome)

        self._pool.reserve(_HAND_OVER)
        self._pool.start(run)
        return await future

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
