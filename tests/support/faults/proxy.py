"""HTTP proxy on loopback in front of a real server, with any failure that remotes show.

A fault is a small class, in the file of its kind; ``registry.py`` names them all. The proxy runs in
a thread of its own, and counts the resources of a budget.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Self, TypeVar

from tests.support.faults.connection import Connection, Upstream
from tests.support.faults.counts import Counts, Seen
from tests.support.faults.fault import Door, Fault, Healthy
from tests.support.faults.keys import keys_in
from tests.support.faults.listener import Listener
from tests.support.faults.message import GoneError

T = TypeVar("T")


class FaultProxy:
    """Proxy in front of an HTTP server; any thread can change its ``fault`` at any time.

    A new fault applies from the next request on every connection. If it changes the state of the
    port for clients that connect, the present connections are closed. Use it as a context manager.
    """

    def __init__(self, upstream_host: str, upstream_port: int, fault: Fault | None = None) -> None:
        self.port = 0
        self._upstream = upstream_host, upstream_port
        self._fault = fault or Healthy()
        self._counts = Counts()
        self._listener: Listener | None = None
        self._sink_url = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="fault-proxy", daemon=True
        )

    @property
    def url(self) -> str:
        """The address of the SPARQL endpoint, by the scheme that the present fault is about."""
        return f"{self._fault.scheme}://127.0.0.1:{self.port}/query"

    @property
    def fault(self) -> Fault:
        """The fault in force; assign another, which returns once that is in force."""
        return self._fault

    @fault.setter
    def fault(self, fault: Fault) -> None:
        self._run(self._switch(fault))

    def counts(self) -> Counts:
        """Return what has come until now."""
        return replace(self._counts, seen=list(self._counts.seen))

    def take(self) -> Counts:
        """Return what has come since this was last called."""

        async def take() -> Counts:
            taken, self._counts = self._counts, Counts()
            return taken

        return self._run(take())

    def drop(self) -> None:
        """Close all connections, as a server does that starts anew."""
        self._run(self._drop())

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._open())
        return self

    def __exit__(self, *_: object) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    async def _open(self) -> None:
        self._sink = await asyncio.start_server(self._redirected, "127.0.0.1", 0)
        self._sink_url = f"http://127.0.0.1:{self._sink.sockets[0].getsockname()[1]}/query"
        self._listener = Listener(self._serve)
        self.port = self._listener.port
        await self._listener.become(self._fault.door)

    async def _close(self) -> None:
        assert self._listener is not None
        await self._listener.become(Door.SHUT)
        self._listener.close()
        self._sink.close()
        await self._drop()

    async def _switch(self, fault: Fault) -> None:
        assert self._listener is not None
        changes_how_to_connect = (fault.door, fault.scheme) != (
            self._fault.door,
            self._fault.scheme,
        )
        self._fault = fault
        await self._listener.become(fault.door)
        if changes_how_to_connect:
            await self._drop()

    async def _drop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _redirected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._counts.redirected += 1
        writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        upstream = Upstream(*self._upstream)
        self._counts.connections += 1
        try:
            await self._converse(
                Connection(reader, writer, upstream, self._sink_url, self._on_sent)
            )
        except asyncio.CancelledError:
            writer.transport.abort()
        except GoneError:
            pass
        finally:
            writer.close()
            upstream.close()
            self._tasks.discard(task)

    def _on_sent(self, size: int) -> None:
        self._counts.sent += size

    async def _converse(self, connection: Connection) -> None:
        await self._fault.connected(connection)
        while True:
            request = await connection.read()
            self._counts.seen.append(Seen(time.monotonic(), keys_in(request), request))
            await self._fault.answer(connection, request)
            connection.answered += 1
