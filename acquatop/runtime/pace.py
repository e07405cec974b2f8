"""Sizes of batches: as large as the driver has room for, judged by those before."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from connectors.divisible import Divisible, step, within

GROWTH = 4
"""Largest ratio of a batch's size to that of the one before."""
MAX_EXCESS = 4
"""Largest ratio of what a batch sends to what it should; beyond, it is done again in parts."""
_FIRST_ROWS, _FIRST_BYTES = 1 << 16, 4 << 20
_OF_HEAP, _OF_RESULTS = 8, 2
"""Shares of the driver's memory, and of Spark's limit on results, that a batch may take."""


@dataclass(frozen=True)
class Allowance:
    """Allowance of bytes that a batch may send to the driver; it should send a part of them."""

    most: int

    @classmethod
    def of(cls, heap: int, results: int) -> Allowance:
        """Return the allowance of a driver's memory and a limit on a job's results, 0 for none.

        Each byte sent is in the driver's memory several times at once: as it came, as a block, as
        it is handed on.
        """
        parts = [heap // _OF_HEAP, *([results // _OF_RESULTS] if results > 0 else [])]
        return cls(max(1, min(parts)))

    @property
    def wanted(self) -> int:
        """Bytes that a batch should send."""
        return max(1, self.most // MAX_EXCESS)


class Pace:
    """Pace of a stream: size of its next batch, in the unit of its source's limit (rows or bytes).

    The first is small. The size is a function of what earlier batches have read and sent, and so
    kept with a stream's position: who goes on from there reads on as it would have been read.
    """

    def __init__(self, allowed: Allowance, first: int, size: int | None = None) -> None:
        self.allowed = allowed
        self.size = size or first

    def sent(self, read: int, sent: int) -> None:
        """Note what a batch has sent. One that was small in both says nothing of larger ones."""
        wanted = self.allowed.wanted
        if 2 * read < self.size and 2 * sent < wanted:
            return
        fitting = read * wanted / sent if sent else math.inf
        self.size = max(1, int(min(fitting, GROWTH * self.size)))

    def exceeded(self, read: int, would_send: int) -> None:
        """Note that a batch was too large to be sent."""
        self.size = max(1, min(read // 2, read * self.allowed.wanted // max(1, would_send)))


class Steps:
    """Cuts what is planned of a stream into batches: at a pace, and within the source's limit.

    Where a batch stops depends on the plan's end only if it stops there. What is mixed is cut only
    when it has turned out to be too much, as the cut decides what of it comes too late.
    """

    def __init__(self, reader: Divisible, allowed: Allowance, size: int | None) -> None:
        first = _FIRST_ROWS if step(reader).counts_rows else _FIRST_BYTES
        self.pace = Pace(allowed, first, size)
        self._reader = reader
        self._too_far: Any = None

    def stop(self, start: Any, end: Any) -> Any:
        """Return where the next batch ends."""
        limited = within(self._reader, start, end, self._limit())
        if end != self._too_far and self._reader.is_mixed(start, limited):
            return limited
        return within(self._reader, start, limited, self.pace.size)

    def _limit(self) -> int:
        return step(self._reader).size(self._reader.getDefaultReadLimit())

    def sent(self, start: Any, stop: Any, sent: int) -> None:
        """Note what a batch has sent."""
        self.pace.sent(self._reader.size(start, stop), sent)

    def exceeded(self, start: Any, stop: Any, end: Any, would_send: int) -> None:
        """Note that a batch was too large to be sent, of what is planned up to an end."""
        self._too_far = end
        self.pace.exceeded(self._reader.size(start, stop), would_send)
