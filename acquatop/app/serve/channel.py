"""Broadcast channel: the last events of a source, for any number of readers."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Generic, NamedTuple, TypeVar

from acquatop.app.serve.notifier import Notifier
from replica.clocks import Clock

_ID = re.compile(r"(-?[0-9]{1,16})(?:\.(-?[0-9]{1,16}))?", re.ASCII)


@dataclass(frozen=True)
class Event:
    """Event with an id to resume from, a kind, and data, which is one line of JSON.

    ``part`` tells events of one id apart, in their order. ``number`` counts the events of its
    channel from 1. ``at`` is the time at which it was put there.
    """

    id: int
    kind: str
    data: bytes
    part: int | None = None
    number: int = 0
    at: float = 0.0

    @property
    def size(self) -> int:
        """The bytes that it counts for."""
        return len(self.data)

    @cached_property
    def frame(self) -> bytes:
        """The event as a server-sent event; built once for all its readers."""
        return frame(self.kind, self.data, str(EventId(self.id, self.part)))

    @property
    def place(self) -> EventId:
        """The event's place in its channel."""
        return EventId(self.id, self.part or 0)


class EventId(NamedTuple):
    """Id of an event, and the part of it; without a part it stands for all parts.

    >>> str(EventId(7)), str(EventId(7, 2)), EventId.parse("-7.2"), EventId.parse("7,2")
    ('7', '7.2', EventId(id=-7, part=2), None)
    """

    id: int
    part: int | None = None

    @classmethod
    def parse(cls, text: str) -> EventId | None:
        """Return the id that a text is, or None."""
        found = _ID.fullmatch(text)
        return None if found is None else cls(int(found[1]), int(found[2]) if found[2] else None)

    def __str__(self) -> str:
        return str(self.id) if self.part is None else f"{self.id}.{self.part}"

    def covers(self, place: EventId) -> bool:
        """Return True if a reader of this event has read that of a place."""
        return place <= self if self.part is not None else place.id <= self.id


def frame(kind: str, data: bytes, id: str | None = None) -> bytes:
    r"""Return a server-sent event; its data must be one line.

    >>> frame("missed", b'{"answers": 2}'), frame("answer", b"{}", "7.1")
    (b'event: missed\ndata: {"answers": 2}\n\n', b'id: 7.1\nevent: answer\ndata: {}\n\n')
    """
    head = b"" if id is None else b"id: %s\n" % id.encode()
    return b"%sevent: %s\ndata: %s\n\n" % (head, kind.encode(), data)


EventT = TypeVar("EventT", bound=Event)


@dataclass(frozen=True)
class News(Generic[EventT]):
    """Events that a reader lacks, the number it missed, and its position after reading them."""

    events: tuple[EventT, ...]
    missed: int
    number: int


class Channel(Generic[EventT]):
    """Bounded buffer of the newest events; a reader is only a number, the last event it has read.

    A reader costs no memory here and slows nobody down. Events that it does not read in time are
    dropped, and counted as missed. An event replaces those whose place is not before its own, such
    as an answer that is emitted again after a crash. Putting is O(1) amortised, in any thread.
    Waiting is for the event loop's.

    >>> channel = Channel(Notifier(), most=2, most_bytes=100)
    >>> for at in (10, 20, 30):
    ...     channel.put(Event(at, "answer", b"{}"))
    >>> news = channel.after(0)
    >>> [event.id for event in news.events], news.missed
    ([20, 30], 1)
    >>> number = channel.number_of(EventId(20))
    >>> number, [event.id for event in channel.after(number).events]
    (2, [30])
    """

    def __init__(
        self, bell: Notifier, *, most: int, most_bytes: int, clock: Clock = time.monotonic
    ) -> None:
        self._bell = bell
        self._most = most
        self._most_bytes = most_bytes
        self._clock = clock
        self._lock = threading.Lock()
        self._events: deque[EventT] = deque()
        self._bytes = 0
        self._last = 0
        # The result for a reader that lacks only the newest event, as nearly all do.
        self._tail: News[EventT] | None = None
        self._waiting: list[asyncio.Future[None]] = []
        self.closed = False
        """True if readers are to leave."""
        self.over = False
        """True if readers are to leave because no further event will come."""

    def put(self, event: EventT) -> None:
        """Add an event, and wake the readers.

        An event that exceeds the limit of bytes is not kept, and counts as missed.
        """
        with self._lock:
            while self._events and self._events[-1].place >= event.place:
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
        """Return at most ``most`` events after a number, oldest first.

        O(1) if only the newest is lacking, else O(n).
        """
        if number >= self._last:
            return News((), 0, number)
        with self._lock:
            if number == self._last - 1 and self._tail is not None:
                return self._tail
            at = bisect_right(self._events, number, key=lambda each: each.number)
            events = tuple(islice(self._events, at, None if most is None else at + most))
            first = self._events[0].number if self._events else self._last + 1
            return News(
                events, max(0, first - number - 1), events[-1].number if events else self._last
            )

    def number_of(self, read: EventId) -> int:
        """Return the number to resume after for a reader of an event; 0 if it is unknown."""
        with self._lock:
            if not self._events or read.id > self._events[-1].id:
                return 0
            events = reversed(self._events)
            return next((each.number for each in events if read.covers(each.place)), 0)

    def newest(self) -> EventT | None:
        """Return the newest event that is kept, or None."""
        with self._lock:
            return self._events[-1] if self._events else None

    def find(self, id: EventId) -> EventT | None:
        """Return the event with an id if it is kept, the last of all its parts; else None.

        O(events kept).
        """
        with self._lock:
            events = (each for each in reversed(self._events) if each.id == id.id)
            return next((each for each in events if id.part in (None, each.part)), None)

    # In the event loop ----------------------------------------------------------------------------

    async def changed(self) -> None:
        """Return at the next ring of the bell."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        await waiter

    def wake(self) -> None:
        """Wake all waiting readers, and forget cancelled ones."""
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            if not each.done():
                each.set_result(None)
