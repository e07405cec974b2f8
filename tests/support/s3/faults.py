"""Faults of a store behind a proxy, and moments to strike at: requests that are under way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from random import Random

from tests.support.faults.connection import Connection
from tests.support.faults.fault import Fault, Harm
from tests.support.faults.message import Message, reply
from tests.support.faults.proxy import FaultProxy
from tests.support.s3.running import pointing_to

BUSY = (
    b'<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>AKIDEXAMPLE xyzzy</Message></Error>'
)


class Strike(Fault):
    """Strike at the nth PUT of an object whose name has a text in it.

    The request is passed on only after :meth:`release`; it is done ``first``, or lost for the
    server until then.
    """

    def __init__(self, part: str, nth: int, strike: Callable[[], None], *, first: bool) -> None:
        self.has_struck = False
        self._part = part
        self._left = nth
        self._strike = strike
        self._first = first
        self._released = threading.Event()

    def release(self) -> None:
        """Pass on the request that is held."""
        self._released.set()

    async def answer(self, connection: Connection, request: Message) -> None:
        """Pass a request on, or strike."""
        method, path, _ = request.start.split(" ")
        self._left -= method == "PUT" and self._part in path
        if self._left or self.has_struck:
            return await super().answer(connection, request)
        self.has_struck = True
        done = await connection.upstream.ask(request) if self._first else None
        self._strike()
        await asyncio.to_thread(self._released.wait)
        done = done or await connection.upstream.ask(request)
        await connection.send(done.to_bytes())
        return None


class Flaky(Fault):
    """A part of the requests fails: refused, cut off before or after their effect, or late."""

    harm = Harm.NONE

    def __init__(self, random: Random, part: float) -> None:
        self.counts = dict.fromkeys(("busy", "before", "after", "late"), 0)
        self._random = random
        self._part = part

    async def answer(self, connection: Connection, request: Message) -> None:
        """Let a request fail, or pass it on."""
        if self._random.random() > self._part:
            return await super().answer(connection, request)
        how = self._random.choice(list(self.counts))
        self.counts[how] += 1
        if how == "busy":
            return await connection.send(reply("503 Slow Down", BUSY, "application/xml").to_bytes())
        if how == "before":
            connection.reset()
        if how == "late":
            await connection.wait(0.2)
        done = await connection.upstream.ask(request)
        if how == "after":
            connection.reset()
        return await connection.send(done.to_bytes())


@contextmanager
def proxied(port: int) -> Iterator[FaultProxy]:
    """Run a proxy in front of the server, named by this process's environment."""
    with FaultProxy("127.0.0.1", port) as proxy, pointing_to(proxy.port):
        yield proxy
