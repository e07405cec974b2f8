"""Counters of input between one answer and the next."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from acquatop.answer.answer import Counts
from acquatop.topk.snapshot import State, pack, reading, unpack
from connectors.mapping import count_faults

_KIND, _VERSION = "tally", 1


class WindowCounters:
    """Events, faults, late items and skipped windows since the last answer.

    >>> counters = WindowCounters()
    >>> counters.late += 2
    >>> counters.take(unscored=1), counters.take().late
    (Counts(events=0, late=2, bad={}, unscored=1, ambiguous=0, skipped=0, rejected={}), 0)
    """

    _bad: dict[str, int]

    def __init__(self) -> None:
        self._clear()

    def count(self, records: pa.RecordBatch) -> None:
        """Count a batch of decoded records and the faults in it."""
        self._events += len(records)
        for reason, count in count_faults([records]).items():
            self._bad[reason] = self._bad.get(reason, 0) + count

    def note(self, events: int, bad: Mapping[str, int]) -> None:
        """Add a number of records, and the faults in them."""
        self._events += events
        for reason, count in bad.items():
            self._bad[reason] = self._bad.get(reason, 0) + count

    def take(
        self, unscored: int = 0, ambiguous: int = 0, rejected: Mapping[str, int] | None = None
    ) -> Counts:
        """Return the counts, with those given, and reset them."""
        counts = Counts(
            self._events, self.late, self._bad, unscored, ambiguous, self.skipped, rejected or {}
        )
        self._clear()
        return counts

    def snapshot(self) -> bytes:
        """Return the whole state."""
        settings = {
            "events": self._events,
            "late": self.late,
            "bad": self._bad,
            "skipped": self.skipped,
        }
        return pack(_KIND, _VERSION, State(settings, {}))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot; raises ``SnapshotError`` for any other bytes."""
        settings = unpack(_KIND, _VERSION, snapshot).settings
        with reading():
            self._events, self.late = settings["events"], settings["late"]
            self._bad, self.skipped = dict(settings["bad"]), settings["skipped"]

    def _clear(self) -> None:
        self.late = 0
        self.skipped = 0
        self._events = 0
        self._bad = {}
