"""Work that waits is done while others get done, and refused when one takes too long."""

from __future__ import annotations

import asyncio
import threading

import pytest

from acquatop.app.serve.bounded_executor import BoundedExecutor
from acquatop.app.serve.problems import Problem
from tests.support.staged import LIMIT


def test_who_waits_is_refused_only_if_nothing_gets_done() -> None:
    async def run() -> None:
        desk = BoundedExecutor(threads=1, most=10, within=0.1, busy="one takes long")
        go_on = threading.Event()
        first = asyncio.create_task(desk.do(go_on.wait, LIMIT))
        await asyncio.sleep(0)
        with pytest.raises(Problem, match="one takes long"):
            await desk.do(lambda: None)
        go_on.set()
        assert await first
        assert await asyncio.gather(*(desk.do(lambda: 1) for _ in range(10))) == [1] * 10

    asyncio.run(run())
