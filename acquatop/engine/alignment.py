"""Watermark alignment between streams that queries join."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

MAX_DRIFT = 2
"""Multiple of the widest window by which a stream may lead another, besides its lateness."""


class AlignedStream(Protocol):
    """Stream as seen by the streams that it is joined with."""

    @property
    def iri(self) -> str:
        """The stream's IRI."""

    @property
    def watermark_ms(self) -> int | None:
        """The stream's watermark; None if it has brought nothing yet."""

    @property
    def is_idle(self) -> bool:
        """True if it brings nothing, so that no other stream has to wait for it."""

    def announce(self, watermark_ms: int) -> None:
        """Note the watermark that queries have been given for it."""

    def wake(self) -> None:
        """Check again whether the next batch may be taken."""


class StreamAlignment:
    """Running streams of queries that are evaluated together.

    An idle stream holds up no other. For queries that join it, its time is that of the slowest
    stream that is not idle, if that is later than its own. A stream that lags and is not idle holds
    up the queries. A stream that the queries have still to join tells them its time itself: only it
    knows what they have missed. The streams ahead of it then wait (:meth:`must_wait`), so that the
    data that waits for it stays bounded. Never do all streams wait, as the slowest never does.
    O(streams).
    """

    def __init__(self) -> None:
        self._streams: dict[str, AlignedStream] = {}
        self._joined: set[str] = set()

    def __len__(self) -> int:
        return len(self._streams)

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def attach(self, stream: AlignedStream) -> None:
        """Add a stream, which the queries are about to join."""
        self._streams = {**self._streams, stream.iri: stream}

    def join(self, stream: AlignedStream) -> None:
        """Note that the queries have joined a stream; add it if it is new."""
        if self._streams.get(stream.iri) is not stream:
            self.attach(stream)
        self._joined.add(stream.iri)

    def detach(self, stream: AlignedStream) -> None:
        """Remove a stream."""
        if self._streams.get(stream.iri) is stream:
            self._streams = {iri: each for iri, each in self._streams.items() if iri != stream.iri}
            self._joined.discard(stream.iri)

    def steps(self, mine: AlignedStream) -> Iterator[tuple[AlignedStream, int]]:
        """Yield the streams with a new time after a change of one's watermark, and their times."""
        streams = self._streams.values()
        if len(streams) < 2:
            if mine.watermark_ms is not None:
                yield mine, mine.watermark_ms
            return
        slowest = self._slowest()
        for each in streams:
            if each is mine or (each.is_idle and each.iri in self._joined):
                times = [each.watermark_ms, slowest if each.is_idle else None]
                known = [time for time in times if time is not None]
                if known:
                    yield each, max(known)

    def _slowest(self) -> int | None:
        """Return the time of the slowest stream that is not idle.

        If all are idle, return the time of the slowest that has one.
        """
        streams = list(self._streams.values())
        awake = [each.watermark_ms for each in streams if not each.is_idle]
        if None in awake:
            return None
        known = [
            time for time in (awake or [each.watermark_ms for each in streams]) if time is not None
        ]
        return min(known, default=None)

    def must_wait(self, mine: AlignedStream, drift_ms: int) -> bool:
        """Return True if a stream is further ahead of another than it may be."""
        reached = mine.watermark_ms
        if reached is None:
            return False
        others = (each for each in self._streams.values() if each is not mine and not each.is_idle)
        return any(
            each.watermark_ms is None or reached - each.watermark_ms > drift_ms for each in others
        )

    def wake(self, but: AlignedStream | None = None) -> None:
        """Let the other streams check again whether they may continue."""
        for each in self._streams.values():
            if each is not but:
                each.wake()
