"""Arithmetic of time-based sliding windows; no other module does it.

Window *i* holds the events in ``(t0 + i·slide, t0 + i·slide + width]`` and is evaluated when it
closes. All times are whole milliseconds since the epoch.

Windows that count a stream's elements use the same arithmetic over the elements' positions
(:func:`over_positions`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Windows:
    """Windows of one width and slide; if a start ``t0_ms`` is given, none opens before it.

    >>> nine_by_three = Windows(width_ms=9, slide_ms=3, t0_ms=1)
    >>> nine_by_three.bounds(1)
    (4, 13)
    >>> nine_by_three.first(10), nine_by_three.last(10)
    (0, 2)
    """

    width_ms: int
    slide_ms: int
    t0_ms: int | None = None

    @property
    def _start(self) -> int:
        return self.t0_ms or 0

    def bounds(self, index: int) -> tuple[int, int]:
        """Return the times at which a window opens (excluded) and closes (included)."""
        opens = self._start + index * self.slide_ms
        return opens, opens + self.width_ms

    def first(self, time_ms: int) -> int:
        """Return the index of the first window that closes at a time or after it."""
        index = -((self._start + self.width_ms - time_ms) // self.slide_ms)
        return index if self.t0_ms is None else max(0, index)

    def last(self, time_ms: int) -> int:
        """Return the index of the last window that opens before a time."""
        return -((self._start - time_ms) // self.slide_ms) - 1

    def closes_at(self, time_ms: int) -> bool:
        """Return True if a window closes at a time.

        >>> nine_by_three = Windows(9, 3, t0_ms=1)
        >>> [time for time in range(17) if nine_by_three.closes_at(time)]
        [10, 13, 16]
        """
        return self.bounds(self.first(time_ms))[1] == time_ms

    def opening_from(self, time_ms: int) -> int:
        """Return the index of the first window that opens at a time or after it.

        >>> Windows(9, 3).opening_from(-7), Windows(9, 3, t0_ms=1).opening_from(-7)
        (-2, 0)
        """
        index = self.last(time_ms) + 1
        return index if self.t0_ms is None else max(0, index)

    def spans(self, times_ms: IntArray) -> tuple[IntArray, IntArray]:
        """Return :meth:`first` and :meth:`last` of many times.

        If first > last, no window holds the time.
        """
        first = -((self._start + self.width_ms - times_ms) // self.slide_ms)
        if self.t0_ms is not None:
            first = np.maximum(0, first)
        return first, -((self._start - times_ms) // self.slide_ms) - 1


def over_positions(count: int, step: int) -> Windows:
    """Return the windows over the last ``count`` elements, one for every ``step``-th element.

    Times are element positions, from 1. Window *i* closes with element ``(i+1)·step``; the first
    windows may hold fewer elements.

    >>> last_five = over_positions(count=5, step=2)
    >>> [last_five.bounds(window) for window in range(3)]
    [(-3, 2), (-1, 4), (1, 6)]
    """
    return Windows(width_ms=count, slide_ms=step, t0_ms=step - count)
