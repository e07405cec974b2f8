"""Streams that queries join: which time counts for them, and which stream has to wait for which."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

ROOM = 2
"""How many times the widest window a stream may be ahead of another, besides its lateness."""


class Paced(Protocol):
    """A stream as others see it."""

    @property
    def iri(self) -> str:
        """Its name."""

    @property
    def watermark_ms(self) -> int | None:
        """How far it has come; None where it has brought nothing yet."""

    @property
    def is_idle(self) -> bool:
        """Whether it brings nothing, so that nobody has to wait for it."""

    def told(self, watermark_ms: int) -> None:
        """Take note of the time that queries have been told for it."""

    def wake(self) -> None:
        """Look again whether it may go on."""


class JoinedTimes:
    """The streams of some queries that are evaluated together, as long as they run.

    A stream that is idle holds up no other: for queries that join it with others it goes on with the slowest of those
    that are not, if that is further than its own time. One that is not idle and lags holds up the queries, and so
    those streams that are ahead of it wait (:meth:`must_wait`): what waits for it stays within bounds. Never do all
    wait, as the slowest never does. O(streams).
    """

    def __init__(self) -> None:
        self._streams: dict[str, Paced] = {}

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def attach(self, stream: Paced) -> None:
        """Begin with a stream."""
        self._streams = {**self._streams, stream.iri: stream}

    def detach(self, stream: Paced) -> None:
        """Go on without a stream."""
        if self._streams.get(stream.iri) is stream:
            self._streams = {iri: each for iri, each in self._streams.items() if iri != stream.iri}

    def steps(self, mine: Paced) -> Iterator[tuple[Paced, int]]:
        """Yield which streams' times have moved now that one's has, and where to."""
        streams = self._streams.values()
        if len(streams) < 2:
            if mine.watermark_ms is not None:
                yield mine, mine.watermark_ms
            return
        slowest = self._slowest()
        for each in streams:
            if each is mine or each.is_idle:
                times = [each.watermark_ms, slowest if each.is_idle else None]
                known = [time for time in times if time is not None]
                if known:
                    yield each, max(known)

    def _slowest(self) -> int | None:
        """Return the time of the slowest stream that is not idle, or of the slowest that has one if all are."""
        streams = list(self._streams.values())
        awake = [each.watermark_ms for each in streams if not each.is_idle]
        if None in awake:
            return None
        known = [time for time in (awake or [each.watermark_ms for each in streams]) if time is not None]
        return min(known, default=None)

    def must_wait(self, mine: Paced, room_ms: int) -> bool:
        """Say whether a stream is further ahead of another than it may be."""
        reached = mine.watermark_ms
        if reached is None:
            return False
        others = (each for each in self._streams.values() if each is not mine and not each.is_idle)
        return any(each.watermark_ms is None or reached - each.watermark_ms > room_ms for each in others)

    def wake(self, but: Paced | None = None) -> None:
        """Let the others look again whether they may go on."""
        for each in self._streams.values():
            if each is not but:
                each.wake()
