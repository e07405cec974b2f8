"""Answers that come late or never."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.faults.connection import Connection
from tests.support.faults.fault import Fault, Harm
from tests.support.faults.message import Message


@dataclass
class Latency(Fault):
    """Round trip of some seconds for every request, and for connecting."""

    seconds: float
    harm = Harm.NONE

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer as late as a distant server would."""
        await connection.wait(self.seconds * (1 if connection.answered else 2))
        await super().answer(connection, request)


class Slow(Latency):
    """Delay that is longer than any client waits."""

    harm = Harm.ALL
    hangs = True


@dataclass
class SlowAfterFirst(Fault):
    """Immediate answer to the first request, delay of some seconds for the others."""

    seconds: float
    requests: int = 0
    harm = Harm.SOME
    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer, but not at once."""
        self.requests += 1
        if self.requests > 1:
            await connection.wait(self.seconds)
        await super().answer(connection, request)


class Hang(Fault):
    """Requests are read and never answered."""

    hangs = True

    async def answer(self, connection: Connection, request: Message) -> None:
        """Say nothing."""
        await connection.hang()
