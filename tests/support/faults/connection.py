"""Connection of a client, with methods to answer and to mistreat it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from tests.support.certificate import CERTIFICATE
from tests.support.faults.message import GoneError, Message, read_message

PIECE = 1 << 16


class Upstream:
    """Connection to the real server, opened at the first use."""

    def __init__(self, host: str, port: int) -> None:
        self._address = host, port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, request: Message) -> Message:
        """Return the server's reply."""
        self._streams = self._streams or await asyncio.open_connection(*self._address)
        reader, writer = self._streams
        writer.write(request.to_bytes())
        return await read_message(reader)

    def close(self) -> None:
        """Leave the server."""
        if self._streams:
            self._streams[1].close()


@dataclass
class Connection:
    """Connection of a client, with methods to answer and to mistreat it."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    upstream: Upstream
    sink_url: str
    on_sent: Callable[[int], None]
    answered: int = 0

    async def read(self) -> Message:
        """Return the next request."""
        return await read_message(self.reader)

    async def send(self, data: bytes) -> None:
        """Send some bytes, as fast as the client takes them."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError as error:
            raise GoneError from error
        self.on_sent(len(data))

    async def dribble(self, data: bytes, interval: float) -> None:
        """Send some bytes one by one."""
        for byte in data:
            await self.send(bytes([byte]))
            await self.wait(interval)

    async def wait(self, seconds: float) -> None:
        """Let time pass; :class:`GoneError` when the client leaves meanwhile."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self.hang(), seconds)

    async def hang(self) -> None:
        """Do nothing until the client leaves."""
        with suppress(ConnectionError):
            while await self.reader.read(PIECE):
                pass
        raise GoneError

    def end(self) -> None:
        """Close the connection in the ordinary way, once all is sent."""
        self.writer.close()
        raise GoneError

    def reset(self) -> None:
        """Send a TCP reset."""
        self.writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        self.writer.transport.abort()
        raise GoneError

    async def secure(self) -> None:
        """Go on over TLS, with a certificate that nobody has signed."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(CERTIFICATE)
        try:
            await self.writer.start_tls(context, ssl_handshake_timeout=60)
        except (ConnectionError, ssl.SSLError) as error:
            raise GoneError from error
