"""Readers of event streams: each reads at its own speed and slows nobody down."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from starlette.types import Message, Receive, Scope, Send

from acquatop.app.serve.channel import Channel, frame
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.serve.limits import Limits
from acquatop.app.serve.problems import Problem
from acquatop.app.serve.refusals import address_of
from replica.clocks import Clock

SIGN_OF_LIFE = b":\n\n"
AT_ONCE = 4
"""Events that a reader holds at most; all others stay in the channel."""

Opening = Callable[[int, int], tuple[int, Iterable[bytes]]]
"""Function that returns the start of a stream: the number to continue after, and frames to send.

It is called with the reader's number, and the number of events that the reader missed.
"""

Give = Callable[[bytes], Awaitable[None]]

_HEADERS = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
)


class Readers:
    """All readers of a service: a bounded number, with regular heartbeats."""

    def __init__(self, limits: Limits, *, meters: Meters, clock: Clock) -> None:
        self.meters = meters
        self.clock = clock
        self.beat = 0
        self._limits = limits
        self._channels: dict[Channel[Any], int] = {}
        self._addresses: Counter[str] = Counter()
        self._count = 0

    def enter(self, channel: Channel[Any], address: str) -> None:
        """Add a reader of a channel; raises :class:`Problem` if there are too many."""
        most, most_of_one = self._limits.readers, self._limits.readers_per_address
        if self._addresses[address] >= most_of_one:
            said = f"{most_of_one} readers of your address are here already"
            raise Problem("too-many-requests", said, retry_after=5.0)
        if self._count >= most:
            raise Problem("unavailable", f"{most} readers are here already", retry_after=5.0)
        self._count += 1
        self._addresses[address] += 1
        self._channels[channel] = self._channels.get(channel, 0) + 1
        self.meters.readers.set(self._count)

    def leave(self, channel: Channel[Any], address: str) -> None:
        """Remove a reader."""
        self._count -= 1
        self._addresses[address] -= 1
        if not self._addresses[address]:
            del self._addresses[address]
        self._channels[channel] -= 1
        if not self._channels[channel]:
            del self._channels[channel]
        self.meters.readers.set(self._count)

    async def keep_alive(self, seconds: float) -> None:
        """Send all readers a heartbeat at an interval, until cancelled."""
        while True:
            await asyncio.sleep(seconds)
            self.beat += 1
            for channel in list(self._channels):
                channel.wake()


class EventStream:
    """Endless response of server-sent events: a channel's events after a number, then new ones.

    A reader holds a number and at most ``AT_ONCE`` events. If it falls behind the channel's buffer
    it gets an ``opening``. If it ``begins`` it gets one first.
    """

    def __init__(
        self,
        readers: Readers,
        channel: Channel[Any],
        number: int,
        *,
        opening: Opening,
        begins: bool = False,
    ) -> None:
        self._readers = readers
        self._channel = channel
        self._number = number
        self._opening = opening
        self._begins = begins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the channel is closed or the reader has gone."""
        start: Message = {"type": "http.response.start", "status": 200, "headers": list(_HEADERS)}
        if scope["method"] == "HEAD":
            await send(start)
            await send({"type": "http.response.body"})
            return
        address = address_of(scope)
        self._readers.enter(self._channel, address)
        # A task of its own is cheap to wake for each event.
        sending, gone = (
            asyncio.create_task(self._send_all(start, send)),
            asyncio.create_task(_gone(receive)),
        )
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            if sending.done():
                sending.result()
        finally:
            sending.cancel()
            gone.cancel()
            self._readers.leave(self._channel, address)

    async def _send_all(self, start: Message, send: Send) -> None:
        await send(start)

        given = 0

        async def give(body: bytes) -> None:
            nonlocal given
            await send({"type": "http.response.body", "body": body, "more_body": True})
            given += 1
            if given % AT_ONCE == 0:
                # The event loop gets a turn to note that the reader has gone: asyncio logs each
                # further attempt to write to a lost connection.
                await asyncio.sleep(0)

        # The head is sent with the first body, and the first event may be far off.
        await give(SIGN_OF_LIFE)
        if self._begins:
            await self._open(0, give)
        beat = self._readers.beat
        while True:
            news = self._channel.after(self._number, AT_ONCE)
            if news.missed:
                self._readers.meters.missed.inc(news.missed)
                await self._open(news.missed, give)
            elif news.events:
                self._number = news.number
                for event in news.events:
                    await give(event.frame)
                    self._readers.meters.delay.observe(self._readers.clock() - event.at)
            elif self._channel.closed:
                await send(
                    {
                        "type": "http.response.body",
                        "body": frame("end", b"{}") if self._channel.over else b"",
                    }
                )
                return
            elif beat != self._readers.beat:
                beat = self._readers.beat
                await give(SIGN_OF_LIFE)
            else:
                await self._channel.changed()

    async def _open(self, missed: int, give: Give) -> None:
        self._number, frames = self._opening(self._number, missed)
        for each in frames:
            await give(each)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def missed_answers(number: int, missed: int) -> tuple[int, Iterable[bytes]]:
    """Return the opening of a reader that missed answers: a notice of their number."""
    return number + missed, [frame("missed", json.dumps({"answers": missed}).encode())]
