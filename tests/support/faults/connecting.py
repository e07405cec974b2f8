"""Connections that are refused, reset or closed."""

from __future__ import annotations

from tests.support.faults.connection import Connection
from tests.support.faults.fault import Door, Fault, Harm
from tests.support.faults.message import Message


class ConnectHangs(Fault):
    """Connecting never ends, as behind a firewall that drops everything."""

    hangs = True
    door = Door.UNANSWERED


class Refuse(Fault):
    """Connections are refused."""

    door = Door.SHUT


class Reset(Fault):
    """Reset instead of an answer."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Reset the connection."""
        connection.reset()


class ResetMidway(Fault):
    """Reset in the middle of the answer."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send half, then reset the connection."""
        whole = (await connection.upstream.ask(request)).to_bytes()
        await connection.send(whole[: len(whole) - 20])
        connection.reset()


class Silent(Fault):
    """The connection is closed without a byte."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Close the connection."""
        connection.end()


class ClosesIdle(Fault):
    """Every connection is closed after its first answer, without notice."""

    harm = Harm.NONE

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer, then close."""
        await super().answer(connection, request)
        connection.end()


class DropsReused(Fault):
    """A connection that is reused is closed once the request has been sent."""

    harm = Harm.SOME

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer once per connection."""
        if connection.answered:
            connection.end()
        await super().answer(connection, request)
