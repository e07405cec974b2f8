"""Replies that are no results, and results that break off."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

from tests.support.faults.connection import Connection
from tests.support.faults.fault import Fault
from tests.support.faults.message import RESULTS, Message, head, reply


@dataclass
class Says(Fault):
    """The same reply to every request."""

    message: Message

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send the reply."""
        await connection.send(self.message.to_bytes())


class Empty(Says):
    """HTTP 200 with an empty body."""

    def __init__(self) -> None:
        super().__init__(reply("200 OK", b"", RESULTS))


class Html(Says):
    """HTML page in place of results, as captive portals send it."""

    def __init__(self) -> None:
        super().__init__(
            reply("200 OK", b"<!doctype html><title>Please log in</title>", "text/html")
        )


class Status(Says):
    """An HTTP status, with a remark in the body."""

    def __init__(self, status: str, **headers: str) -> None:
        super().__init__(reply(status, b"the server is not well", **headers))


class TooManyUntil(Fault):
    """HTTP 429 with the date from which on requests are accepted again."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    async def answer(self, connection: Connection, request: Message) -> None:
        """Refuse, and say until when."""
        until = format_datetime(datetime.now(UTC) + timedelta(seconds=self._seconds), usegmt=True)
        await connection.send(Status("429 Too Many Requests", Retry_After=until).message.to_bytes())


@dataclass
class Truncated(Fault):
    """The body ends early; ``sized`` adds a Content-Length, by which a client can tell."""

    sized: bool

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send most of it."""
        found = await connection.upstream.ask(request)
        whole = found.to_bytes()
        if not self.sized:
            whole = head(found.start, {"content-type": RESULTS, "connection": "close"}) + found.body
        await connection.send(whole[:-3])
        connection.end()


@dataclass
class Redirect(Fault):
    """Redirect to another port, which counts its visitors."""

    status: str

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send the client elsewhere."""
        await connection.send(reply(self.status, b"", location=connection.sink_url).to_bytes())
