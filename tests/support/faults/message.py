"""HTTP requests and replies, as they travel."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

HEAD_END = b"\r\n\r\n"
RESULTS = "application/sparql-results+json"


@dataclass(frozen=True)
class Message:
    """HTTP request or reply: its first line, its headers (names in lower case), its body."""

    start: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def status(self) -> int:
        """A reply's status."""
        return int(self.start.split()[1])

    def to_bytes(self) -> bytes:
        """Return it as it travels, with a Content-Length."""
        headers = {**self.headers, "content-length": str(len(self.body))}
        headers.pop("transfer-encoding", None)
        return head(self.start, headers) + self.body


def head(start: str, headers: Mapping[str, str]) -> bytes:
    return (
        "\r\n".join([start, *(f"{name}: {value}" for name, value in headers.items())]).encode(
            "latin-1"
        )
        + HEAD_END
    )


def reply(status: str, body: bytes, content_type: str = "text/plain", **headers: str) -> Message:
    """Return a reply; underscores in the names of headers stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Message(f"HTTP/1.1 {status}", {"content-type": content_type, **named}, body)


class GoneError(Exception):
    """Error: the other side has closed the connection."""


async def read_message(reader: asyncio.StreamReader) -> Message:
    """Read a message. Raises :class:`GoneError` when the connection ends first."""
    try:
        head = (await reader.readuntil(HEAD_END)).decode("latin-1")
        start, *lines = head.strip().split("\r\n")
        headers = {
            name.lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return Message(start, headers, await _chunks(reader))
        return Message(
            start, headers, await reader.readexactly(int(headers.get("content-length", "0")))
        )
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError) as error:
        raise GoneError from error


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    pieces = []
    while size := int((await reader.readline()).split(b";")[0] or b"0", 16):
        pieces.append(await reader.readexactly(size))
        await reader.readline()
    await reader.readline()
    return b"".join(pieces)
