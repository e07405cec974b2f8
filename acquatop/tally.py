"""Counting what comes in between one answer and the next."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from acquatop.answer import Counts
from connectors.mapping import count_faults


class Tally:
    """Events, faults, late items and skipped windows since the last answer.

    >>> tally = Tally()
    >>> tally.late += 2
    >>> tally.take(unscored=1), tally.take().late
    (Counts(events=0, late=2, bad={}, unscored=1, ambiguous=0, skipped=0, rejected={}), 0)
    """

    def __init__(self) -> None:
        self._clear()

    def count(self, records: pa.RecordBatch) -> None:
        """Count a batch of decoded records and the faults in it."""
        self._events += len(records)
        for reason, count in count_faults([records]).items():
            self._bad[reason] = self._bad.get(reason, 0) + count

    def take(self, unscored: int = 0, ambiguous: int = 0, rejected: Mapping[str, int] | None = None) -> Counts:
        """Return the counts, with those that others know, and begin anew."""
        counts = Counts(self._events, self.late, self._bad, unscored, ambiguous, self.skipped, rejected or {})
        self._clear()
        return counts

    def _clear(self) -> None:
        self.late = 0
        self.skipped = 0
        self._events = 0
        self._bad: dict[str, int] = {}
