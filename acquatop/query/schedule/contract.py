"""Contract of schedules: the windows that are due, each once, in the order in which they close."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Generic, TypeVar

from acquatop.ingest.reduce.late_finder import AnsweredSoFar

DueT = TypeVar("DueT")


class Schedule(ABC, Generic[DueT]):
    """Order in which the windows of one evaluation close.

    A run of more than ``MAX_EMPTY_WINDOWS`` empty windows is skipped and counted. Its forms are one
    window (``one_window``), windows over several streams (``several_streams``), windows over
    positions (``every_position``), and windows of each member (``acquatop.query.shared.schedule``).
    """

    @property
    @abstractmethod
    def next_close_ms(self) -> int | None:
        """Close of the next window; None while none has begun."""

    @abstractmethod
    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows on a stream, and how far each are answered."""

    @abstractmethod
    def end(self, stream: str) -> float:
        """Note the end of a stream; return the time up to which windows are due now.

        Minus infinity if none is.
        """

    @abstractmethod
    def _take(self, closes_ms: int, watermark_ms: float) -> DueT | None:
        """Close the next windows, or skip a run of empty ones; None if there is nothing to do."""

    def due(self, watermark_ms: float) -> Iterator[DueT]:
        """Yield the windows that close up to a watermark, each after the previous was dealt with.

        The first windows must have been found before.
        """
        while (closes_ms := self.next_close_ms) is not None and closes_ms <= watermark_ms:
            due = self._take(closes_ms, watermark_ms)
            if due is not None:
                yield due

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the close of the next window on a stream after a time; None without windows."""
        closes = (
            each.windows.bounds(each.windows.first(time_ms + 1))[1] for each in self.windows(stream)
        )
        return min(closes, default=None)
