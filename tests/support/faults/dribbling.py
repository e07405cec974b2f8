"""Answers that come byte by byte, or whose head never ends."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.faults.connection import PIECE, Connection
from tests.support.faults.fault import Fault
from tests.support.faults.large import LARGE
from tests.support.faults.message import HEAD_END, Message, head


@dataclass
class DribbleHead(Fault):
    """The answer's headers come byte by byte."""

    interval: float
    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send the head slowly."""
        found = await connection.upstream.ask(request)
        await connection.dribble(found.to_bytes().partition(HEAD_END)[0] + HEAD_END, self.interval)
        await connection.send(found.body)


@dataclass
class DribbleBody(Fault):
    """The answer's body comes byte by byte."""

    interval: float
    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send the body slowly."""
        found = await connection.upstream.ask(request)
        await connection.send(found.to_bytes().partition(HEAD_END)[0] + HEAD_END)
        await connection.dribble(found.body, self.interval)


@dataclass
class EndlessHead(Fault):
    """Endless headers, faster than a client can read them."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send nothing but headers."""
        await connection.send(b"HTTP/1.1 200 OK\r\nx-filler: ")
        for _ in range(LARGE // PIECE):
            await connection.send(b"x" * PIECE)
        await connection.hang()


@dataclass
class EndlessContinue(Fault):
    """Endless interim replies, without a final reply."""

    interval: float
    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Ask for patience, again and again."""
        while True:
            await connection.send(head("HTTP/1.1 100 Continue", {}))
            await connection.wait(self.interval)
