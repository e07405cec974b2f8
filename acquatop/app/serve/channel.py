"""The last events of something, for any number of readers."""

from __future__ import annotations

import asyncio
import threading
import time
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Generic, TypeVar

from acquatop.app.serve.bell import Bell
from replica.clocks import Clock


@dataclass(frozen=True)
class Event:
    """One event: a name that a reader can go on from, what it is, and its data, which is one line of JSON.

    ``number`` counts the events of its channel from 1, and ``at`` says when it was put there.
    """

    id: int
    kind: str
    data: bytes
    number: int = 0
    at: float = 0.0

    @property
    def size(self) -> int:
        """How many bytes it counts for."""
        return len(self.data)

    @cached_property
    def frame(self) -> bytes:
        """The event as a server-sent event; made once, for all its readers."""
        return frame(self.kind, self.data, self.id)


def frame(kind: str, data: bytes, id: int | None = None) -> bytes:
    r"""Return a server-sent event; its data must be one line.

    >>> frame("missed", b'{"answers": 2}'), frame("answer", b"{}", 7)
    (b'event: missed\ndata: {"answers": 2}\n\n', b'id: 7\nevent: answer\ndata: {}\n\n')
    """
    head = b"" if id is None else b"id: %d\n" % id
    return b"%sevent: %s\ndata: %s\n\n" % (head, kind.encode(), data)


EventT = TypeVar("EventT", bound=Event)


@dataclass(frozen=True)
class News(Generic[EventT]):
    """What a reader has not read yet, how much of it is gone already, and how far it has read with this."""

    events: tuple[EventT, ...]
    missed: int
    number: int


class Channel(Generic[EventT]):
    """Keeps the newest events, so many and so many bytes of them; a reader is but a number: how far it has read.

    So a reader costs no memory here, however slow it is, and holds up nobody: what it has not read in time is gone, and
    counted. An event whose ``id`` is no greater than those before takes their place, as an answer does that is given
    again after a crash. Putting is O(1) amortised and may be done in any thread; waiting is for the event loop's.

    >>> channel = Channel(Bell(), most=2, most_bytes=100)
    >>> for at in (10, 20, 30):
    ...     channel.put(Event(at, "answer", b"{}"))
    >>> news = channel.after(0)
    >>> [event.id for event in news.events], news.missed
    ([20, 30], 1)
    >>> channel.number_of(20), [event.id for event in channel.after(channel.number_of(20)).events]
    (2, [30])
    """

    def __init__(self, bell: Bell, *, most: int, most_bytes: int, clock: Clock = time.monotonic) -> None:
        self._bell = bell
        self._most = most
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._events: deque[EventT] = deque()
        self._bytes = 0
        self._last = 0
        # What nearly all readers are given: whoever has read all but the newest event.
        self._tail: News[EventT] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self.closed = False
        """Whether readers are to leave."""
        self.over = False
        """Whether that is because no further event will ever come."""

    def put(self, event: EventT) -> None:
        """Add an event, and wake who waits. One that is longer than all that may be kept only counts as missed."""
        with self._lock:
            while self._events and self._events[-1].id >= event.id:
                self._bytes -= self._events.pop().size
            self._last += 1
            self._events.append(replace(event, number=self._last, at=self._clock()))
            self._bytes += event.size
            while len(self._events) > self._most or self._bytes > self._most_bytes:
                self._bytes -= self._events.popleft().size
            self._tail = News((self._events[-1],), 0, self._last) if self._events else None
        self._bell.ring(self)

    def close(self, *, over: bool = False) -> None:
        """Let readers leave; if it is ``over``, they need not come back."""
        self.over, self.closed = over, True
        self._bell.ring(self)

    @property
    def last(self) -> int:
        """The number of the newest event, 0 before the first."""
        return self._last

    def after(self, number: int, most: int | None = None) -> News[EventT]:
        """Return what has come since an event, oldest first, at most so many. O(1) for the newest, else O(n)."""
        if number >= self._last:
            return News((), 0, number)
        with self._lock:
            if number == self._last - 1 and self._tail is not None:
                return self._tail
            at = bisect_right(self._events, number, key=lambda each: each.number)
            events = tuple(islice(self._events, at, None if most is None else at + most))
            first = self._events[0].number if self._events else self._last + 1
            return News(events, max(0, first - number - 1), events[-1].number if events else self._last)

    def number_of(self, id: int) -> int:
        """Return after which number a reader goes on that has read the event of an id: 0 if that cannot be told."""
        with self._lock:
            if not self._events or id > self._events[-1].id:
                return 0
            return next((each.number for each in reversed(self._events) if each.id <= id), 0)

    def newest(self) -> EventT | None:
        """Return the newest event that is kept."""
        with self._lock:
            return self._events[-1] if self._events else None

    def find(self, id: int) -> EventT | None:
        """Return the event of an id, if it is kept. O(events kept)."""
        with self._lock:
            return next((each for each in self._events if each.id == id), None)

    # In the event loop ----------------------------------------------------------------------------

    async def changed(self) -> None:
        """Return when the bell is rung the next time."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def wake(self) -> None:
        """Let all go on that wait; those that have been cancelled meanwhile are forgotten."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
