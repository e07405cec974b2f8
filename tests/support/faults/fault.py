"""Base of all faults, and its properties."""

from __future__ import annotations

import enum

from tests.support.faults.connection import Connection
from tests.support.faults.message import Message


class Door(enum.Enum):
    """State of the port for a client that connects."""

    OPEN = enum.auto()
    SHUT = enum.auto()
    """Not listening: connections are refused."""
    UNANSWERED = enum.auto()
    """Not accepting: connecting hangs."""


class Harm(enum.Enum):
    """Harm of a fault to any client, even if the client copes well."""

    NONE = enum.auto()
    """All data is available."""
    SOME = enum.auto()
    """Replies come, but some data is missing or wrong."""
    ALL = enum.auto()
    """No usable data comes, or not in time."""


class Fault:
    """Base class of faults, which itself does no harm; use an object once, as some have state."""

    harm = Harm.ALL
    door = Door.OPEN
    hangs = False
    """True if a client waits until its timeout."""
    scheme = "http"
    """The scheme that the client was told to use."""

    async def connected(self, connection: Connection) -> None:
        """Meet a client that has connected, before it has said anything."""

    async def answer(self, connection: Connection, request: Message) -> None:
        """Answer a request; :class:`GoneError` says that no further one will come
        on this connection.
        """
        await connection.send((await connection.upstream.ask(request)).to_bytes())


class Healthy(Fault):
    """No fault: the server's answers are passed on."""

    harm = Harm.NONE
