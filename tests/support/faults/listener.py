"""Port that clients connect to, or cannot."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from tests.support.faults.fault import Door


class Listener:
    """A port that keeps its number while it is not listening."""

    def __init__(
        self,
        serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]],
    ) -> None:
        self._serve = serve
        self._server: asyncio.Server | None = None
        self._fillers: list[socket.socket] = []
        self._socket = self._bound(0)
        self.port = int(self._socket.getsockname()[1])
        self._door = Door.SHUT

    @staticmethod
    def _bound(port: int) -> socket.socket:
        bound = socket.socket()
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(("127.0.0.1", port))
        return bound

    async def become(self, door: Door) -> None:
        """Change what a client finds that wants to connect."""
        if door is self._door:
            return
        if self._door is not Door.SHUT:
            self.close()
            # Bound without listening: connections are refused, and nobody else can take the port.
            self._socket = self._bound(self.port)
        self._door = door
        if door is Door.OPEN:
            self._server = await asyncio.start_server(self._serve, sock=self._socket)
        elif door is Door.UNANSWERED:
            self._fill()

    def _fill(self) -> None:
        """Let so many wait to be accepted that the system takes no notice of any other."""
        self._socket.listen(0)
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(("127.0.0.1", self.port))
            self._fillers.append(filler)

    def close(self) -> None:
        """Give up the port."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self._socket.close()
        for filler in self._fillers:
            filler.close()
        self._fillers.clear()
