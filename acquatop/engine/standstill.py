"""Detection of a stream whose records keep coming while its watermark stands still."""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from acquatop.ingest.reduce.late_finder import TOO_FAR_AHEAD
from replica.clocks import Clock

AFTER_SECONDS = 60.0
"""Time after which a watermark that does not move is said to stand still."""


class Hindrance(enum.StrEnum):
    """Kinds of records that move no watermark."""

    LATE = "late"
    BAD = "bad"
    AHEAD = "too far ahead"
    """Bad records, as they are too far ahead of the clock."""
    NOT_NEWER = "not newer"
    """Good records that are not newer than those before, such as all of one time."""


@dataclass(frozen=True, kw_only=True)
class Standstill:
    """Standstill of a watermark since the first record that did not move it.

    ``records`` counts the records since then, by what kept them from moving it. A watermark of
    None has never been known.
    """

    watermark_ms: int | None
    seconds: float
    records: Mapping[Hindrance, int]

    @property
    def total(self) -> int:
        """The number of records since the watermark has moved."""
        return sum(self.records.values())

    @property
    def main(self) -> Hindrance:
        """The kind of the most of these records."""
        return max(self.records, key=lambda each: self.records[each])


class StandstillWatch:
    """Watch over the watermark of one stream. A batch takes O(reasons), and so does its memory.

    A stream that brings nothing is not watched: it is idle, not at a standstill. Batches come one
    at a time; :attr:`present` may be read by any thread.

    >>> now = 0.0
    >>> watch = StandstillWatch(lambda: now, after_seconds=60)
    >>> watch.note(events=3, bad={}, late=0, watermark_ms=100)
    >>> watch.note(events=2, bad={}, late=2, watermark_ms=100)
    >>> now = 60.0
    >>> watch.note(events=1, bad={"not JSON": 1}, late=0, watermark_ms=100).main.value
    'late'
    >>> watch.note(events=1, bad={}, late=0, watermark_ms=101)
    """

    def __init__(self, clock: Clock, *, after_seconds: float = AFTER_SECONDS) -> None:
        self.present: Standstill | None = None
        self._clock = clock
        self._after_seconds = after_seconds
        self._watermark_ms: int | None = None
        self._since: float | None = None
        self._records: Counter[Hindrance] = Counter()

    def note(
        self, *, events: int, bad: Mapping[str, int], late: int, watermark_ms: int | None
    ) -> Standstill | None:
        """Note a batch of a stream; return the standstill that it prolongs, None if there is none.

        ``events`` counts all records, ``bad`` the bad ones by reason, ``late`` the late ones.
        """
        now = self._clock()
        if watermark_ms != self._watermark_ms:
            self._watermark_ms, self._since, self.present = watermark_ms, None, None
            self._records.clear()
        elif events:
            self._since = now if self._since is None else self._since
            self._records += _hindrances(events, bad, late)
            self.present = self._seen(now - self._since)
        return self.present

    def _seen(self, seconds: float) -> Standstill | None:
        if seconds < self._after_seconds:
            return None
        return Standstill(
            watermark_ms=self._watermark_ms, seconds=seconds, records=dict(self._records)
        )


def _hindrances(events: int, bad: Mapping[str, int], late: int) -> Counter[Hindrance]:
    ahead, unusable = bad.get(TOO_FAR_AHEAD, 0), sum(bad.values())
    return Counter(
        {
            Hindrance.LATE: late,
            Hindrance.BAD: unusable - ahead,
            Hindrance.AHEAD: ahead,
            Hindrance.NOT_NEWER: events - unusable - late,
        }
    )
