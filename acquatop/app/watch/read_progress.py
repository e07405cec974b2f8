"""Progress on streams that have an end."""

from __future__ import annotations

from dataclasses import dataclass

from acquatop.engine.observer import BatchSeen
from replica.clocks import Clock


@dataclass(frozen=True)
class ReadProgress:
    """The part read so far (0 to 1), events per second since the start, seconds left if known."""

    part: float
    rate: float
    left_seconds: float | None

    def __str__(self) -> str:
        """Return the text for people.

        >>> str(ReadProgress(0.5, 12345.6, 3725)), str(ReadProgress(0.0, 0.0, None))
        ('50.0 % read · 12,346 events/s · 1:02:05 left', '0.0 % read · 0 events/s')
        """
        left = "" if self.left_seconds is None else f" · {duration(self.left_seconds)} left"
        return f"{100 * self.part:.1f} % read · {self.rate:,.0f} events/s{left}"


class StreamReading:
    """Progress of batches that report the size of their source, in any unit; streams count equally.

    Time and memory O(streams). Not safe for several threads at once.

    >>> now = 100.0
    >>> reading = StreamReading(clock=lambda: now)
    >>> reading.add(BatchSeen(stream="s", events=10, done=100, total=1000))
    >>> now = 110.0
    >>> reading.add(BatchSeen(stream="s", events=20, done=300, total=1000))
    >>> reading.how_far()
    ReadProgress(part=0.3, rate=2.0, left_seconds=35.0)
    """

    def __init__(self, *, clock: Clock) -> None:
        self._clock = clock
        self._parts: dict[str, float] = {}
        self._first: tuple[float, float] | None = None
        self._events = 0

    def add(self, seen: BatchSeen) -> None:
        """Record a batch."""
        if seen.done is None or seen.total is None:
            return
        self._parts[seen.stream] = min(1.0, seen.done / seen.total) if seen.total > 0 else 1.0
        if self._first is None:
            # The cost of the first batch includes the start of the runtime.
            self._first = (self._clock(), self._part())
        else:
            self._events += seen.events

    def _part(self) -> float:
        return sum(self._parts.values()) / len(self._parts)

    def how_far(self) -> ReadProgress | None:
        """Return the progress of the streams; None if none of them reports it."""
        if self._first is None:
            return None
        started, from_part = self._first
        seconds, part = self._clock() - started, self._part()
        rate = self._events / seconds if seconds > 0 else 0.0
        left = None
        if part > from_part and seconds > 0:
            left = (1 - part) * seconds / (part - from_part)
        return ReadProgress(part, rate, left)


def duration(seconds: float) -> str:
    """Return seconds as hours, minutes and seconds.

    >>> duration(59.7), duration(3600)
    ('1:00', '1:00:00')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
