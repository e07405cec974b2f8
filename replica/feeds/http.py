"""A long HTTP reply as a feed: JSON lines, or server-sent events."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random

from replica.clocks import Clock
from replica.feeds.contract import ChangeSink
from replica.feeds.framing import Framing, Lines, ServerSentEvents
from replica.feeds.record_forwarder import RecordForwarder
from replica.feeds.retry_pauses import RetryPauses
from replica.http.client import HttpClient, Request
from replica.remotes import RemoteError
from replica.remotes.records import RecordReader

Wait = Callable[[float], bool]
"""Function that waits for some seconds, less if the feed is stopped; returns True if it is."""

_PIECE = 1 << 16
_ACCEPT = "text/event-stream, application/x-ndjson, application/json;q=0.5"


class HttpFeed:
    """Feed that requests an address, and again when the reply ends or after ``lifetime`` seconds.

    ``text/event-stream`` is read as server-sent events, and their last id is sent with the next
    request. Anything else is read as JSON lines. Between two requests it waits ``first_wait``
    seconds, or as long as the events say. The wait doubles with each request that brought nothing,
    up to ``longest_wait``; a random share of it between half and all is waited, but never less than
    the server asks for. ``client`` should be the feed's own, with a ``longest_reply`` large enough
    for a whole lifetime. Data is passed on as soon as it is read.
    """

    def __init__(
        self,
        address: str,
        reader: RecordReader,
        *,
        client: HttpClient,
        clock: Clock,
        random: Random,
        deleted: str = "deleted",
        lifetime: float = 3600.0,
        first_wait: float = 1.0,
        longest_wait: float = 60.0,
        wait: Wait | None = None,
    ) -> None:
        self.failure: str | None = "not connected yet"
        self.connections = 0
        """Number of connections; each after the first means that changes may have been missed."""
        self._address = address
        self._client = client
        self._lifetime = lifetime
        self._pauses = RetryPauses(first_wait, longest_wait, random)
        self._forwarder = RecordForwarder(reader, deleted, clock)
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._events = ServerSentEvents()

    def start(self, sink: ChangeSink) -> None:
        """Start requesting the address."""
        self._forwarder.start(sink)
        threading.Thread(target=self._run, name="following an address", daemon=True).start()

    def stop(self) -> None:
        """Stop; no call of the sink follows.

        The connection ends when its next bytes arrive, or with its lifetime.
        """
        self._ended.set()
        self._forwarder.stop()

    def _run(self) -> None:
        in_vain = 0
        try:
            while not self._ended.is_set():
                has_come, asked_to_wait = self._connect()
                in_vain = 0 if has_come else in_vain + 1
                pause = self._pauses.after(in_vain, self._events.retry_seconds)
                if self._wait(max(pause, asked_to_wait)):
                    return
        except Exception as error:
            self.failure = f"it is followed no longer: {type(error).__name__}: {error}"
            raise

    def _connect(self) -> tuple[bool, float]:
        """Pass on one reply; return whether it brought anything, and the wait asked for."""
        has_come = False
        try:
            with self._client.send(
                Request("GET", self._address, self._headers(), None), self._lifetime
            ) as reply:
                self.connections += 1
                self.failure = None
                framing = self._framing(reply.headers.get("Content-Type", ""))
                while not self._ended.is_set() and (piece := reply.read(_PIECE)):
                    has_come = True
                    self._forwarder.forward(framing.feed(piece))
                self._forwarder.forward([framing.end()])
                self.failure = "the connection was closed"
        except RemoteError as error:
            self.failure = str(error)
            return has_come, error.retry_after or 0.0
        return has_come, 0.0

    def _headers(self) -> dict[str, str]:
        last_id = self._events.last_id
        return {"Accept": _ACCEPT, "Cache-Control": "no-store"} | (
            {"Last-Event-ID": last_id} if last_id else {}
        )

    def _framing(self, content_type: str) -> Framing:
        if content_type.partition(";")[0].strip().lower() != "text/event-stream":
            return Lines()
        retry_seconds = self._events.retry_seconds
        self._events = ServerSentEvents(self._events.last_id)
        self._events.retry_seconds = retry_seconds
        return self._events
