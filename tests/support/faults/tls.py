"""TLS that is not what it should be."""

from __future__ import annotations

from dataclasses import dataclass

from tests.support.faults.connection import Connection
from tests.support.faults.fault import Fault
from tests.support.faults.message import Message
from tests.support.faults.replies import Status


class TlsGarbage(Fault):
    """The bytes of another protocol."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer with a TLS alert, and what looks like the rest of one."""
        await connection.send(b"\x15\x03\x03\x00\x02\x02\x46" + bytes(range(256)))
        connection.end()


class PlainForTls(Fault):
    """Plain HTTP for a client that was told to use TLS."""

    scheme = "https"

    async def connected(self, connection: Connection) -> None:
        """Say something before the client can know that it makes no sense."""
        await connection.send(Status("400 Bad Request").message.to_bytes())
        connection.end()


class SelfSigned(Fault):
    """A self-signed certificate."""

    scheme = "https"

    async def connected(self, connection: Connection) -> None:
        """Speak TLS from here on."""
        await connection.secure()


class TlsHangs(Fault):
    """The TLS handshake never ends."""

    hangs = True
    scheme = "https"

    async def connected(self, connection: Connection) -> None:
        """Let the client wait for the server's part of the handshake."""
        await connection.hang()


@dataclass
class TlsDribble(Fault):
    """The TLS handshake comes byte by byte."""

    interval: float
    scheme = "https"
    hangs = True

    async def connected(self, connection: Connection) -> None:
        """Begin a record that never ends."""
        await connection.send(b"\x16\x03\x03\x40\x00")
        while True:
            await connection.dribble(bytes(64), self.interval)
