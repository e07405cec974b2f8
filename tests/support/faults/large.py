"""Replies that are too large."""

from __future__ import annotations

import functools
import gzip
from dataclasses import dataclass

from tests.support.faults.connection import PIECE, Connection
from tests.support.faults.fault import Fault
from tests.support.faults.message import RESULTS, Message, head, reply
from tests.support.faults.replies import Says

LARGE = 100 << 20
"""Bytes that a server sends if it sends too much."""


@dataclass
class Large(Fault):
    """A hundred megabytes: ``opening``, then one ``piece`` after the other."""

    opening: bytes
    piece: bytes

    async def answer(self, connection: Connection, request: Message) -> None:
        """Send and send."""
        await connection.send(
            head("HTTP/1.1 200 OK", {"content-type": RESULTS, "connection": "close"})
        )
        await connection.send(self.opening)
        pieces = self.piece * (PIECE // len(self.piece))
        for _ in range(LARGE // len(pieces)):
            await connection.send(pieces)
        connection.end()


class Compressed(Says):
    """Small body that decompresses to a hundred megabytes, in an encoding not asked for."""

    def __init__(self) -> None:
        super().__init__(reply("200 OK", _packed(), RESULTS, content_encoding="gzip"))


@functools.cache
def _packed() -> bytes:
    return gzip.compress(b" " * LARGE, compresslevel=1)
