"""Splitting of rows into panes: stretches of time that enter and leave every window together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from acquatop.topk.contract import IntArray
from acquatop.windows import Windows

_MANY = 64
"""Least number of rows of a pane for which a search for its end is faster than looking at all."""
Positions = IntArray | slice
"""Positions of rows: a slice if they are adjacent, so that columns need not be copied."""


def by_pane(windows: Windows, times: IntArray) -> Iterator[tuple[int, int, Positions]]:
    """Yield the first and last window of each pane and the positions of its rows, in time order.

    Rows in no window are left out. O(n), or O(n log n) if panes are out of order; rows in order of
    time are only compared with their neighbours.

    >>> [
    ...     (first, last, at.tolist())
    ...     for first, last, at in by_pane(Windows(9, 3, 0), np.array([5, 2, 4]))
    ... ]
    [(0, 0, [1]), (0, 1, [0, 2])]
    >>> [(first, last, at) for first, last, at in by_pane(Windows(9, 3, 0), np.array([2, 5, 4]))]
    [(0, 0, slice(0, 1, None)), (0, 1, slice(1, 3, None))]
    """
    if _few_in_order(windows, times):
        for first, last, at in _runs_in_order(windows, times):
            if first <= last:
                yield first, last, at
        return
    firsts, lasts = windows.spans(times)
    order = None
    if (firsts[1:] < firsts[:-1]).any() or (lasts[1:] < lasts[:-1]).any():
        # Stable: rows of a pane keep their order of arrival.
        order = np.lexsort((lasts, firsts))
        firsts, lasts = firsts[order], lasts[order]
    for first, last, at in runs_of(firsts, lasts):
        if first <= last:
            yield first, last, at if order is None else order[at]


def spans_of(windows: Windows, times: IntArray) -> IntArray:
    """Return the first and last window of each pane of some times, in time order. O(n log n).

    >>> spans_of(Windows(9, 3, 0), np.array([5, 2, 4])).tolist()
    [[0, 0], [0, 1]]
    """
    if _few_in_order(windows, times):
        runs = [(first, last) for first, last, _ in _runs_in_order(windows, times)]
        return np.array(runs, dtype=np.int64).reshape(-1, 2)
    firsts, lasts = windows.spans(np.sort(times))
    runs = [(first, last) for first, last, _ in runs_of(firsts, lasts)]
    return np.array(runs, dtype=np.int64).reshape(-1, 2)


def _few_in_order(windows: Windows, times: IntArray) -> bool:
    """Return True if times are in order and lie in far fewer panes than they are."""
    if not len(times) or (times[1:] < times[:-1]).any():
        return False
    ends = [(windows.first(each), windows.last(each)) for each in (int(times[0]), int(times[-1]))]
    return _MANY * (sum(ends[1]) - sum(ends[0])) < len(times)


def _runs_in_order(windows: Windows, times: IntArray) -> Iterator[tuple[int, int, slice]]:
    """Yield the panes of times in order, and the slice of each. O(panes log n)."""
    start = 0
    while start < len(times):
        time_ms = int(times[start])
        first, last = windows.first(time_ms), windows.last(time_ms)
        # A pane ends where its first window closes or one more opens.
        end = min(windows.bounds(first)[1], windows.bounds(last + 1)[0])
        stop = start + int(np.searchsorted(times[start:], end, side="right"))
        yield first, last, slice(start, stop)
        start = stop


def within(at: Positions, places: IntArray) -> IntArray:
    """Return the positions of some of a pane's rows, given by their places in the pane.

    >>> (
    ...     within(slice(5, 9), np.array([0, 2])).tolist(),
    ...     within(np.array([4, 7, 8]), np.array([0, 2])).tolist(),
    ... )
    ([5, 7], [4, 8])
    """
    return places + at.start if isinstance(at, slice) else at[places]


def runs_of(firsts: IntArray, lasts: IntArray) -> Iterator[tuple[int, int, slice]]:
    """Yield the panes of sorted rows, and the slice of each."""
    changes = (np.diff(firsts, prepend=firsts[:1] - 1) != 0) | (
        np.diff(lasts, prepend=lasts[:1] - 1) != 0
    )
    begins = np.flatnonzero(changes).tolist()
    for start, stop in zip(begins, [*begins[1:], len(firsts)] if begins else [], strict=True):
        yield int(firsts[start]), int(lasts[start]), slice(start, stop)
