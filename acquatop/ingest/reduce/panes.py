"""Splitting of rows into panes: stretches of time that enter and leave every window together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from acquatop.topk.contract import IntArray
from acquatop.windows import Windows

Positions = IntArray | slice
"""Positions of rows: a slice if they are adjacent, so that columns need not be copied."""


def by_pane(windows: Windows, times: IntArray) -> Iterator[tuple[int, int, Positions]]:
    """Yield the first and last window of each pane and the positions of its rows, in time order.

    Rows in no window are left out. O(n), or O(n log n) if panes are out of order.

    >>> [
    ...     (first, last, at.tolist())
    ...     for first, last, at in by_pane(Windows(9, 3, 0), np.array([5, 2, 4]))
    ... ]
    [(0, 0, [1]), (0, 1, [0, 2])]
    >>> [(first, last, at) for first, last, at in by_pane(Windows(9, 3, 0), np.array([2, 5, 4]))]
    [(0, 0, slice(0, 1, None)), (0, 1, slice(1, 3, None))]
    """
    firsts, lasts = windows.spans(times)
    order = None
    if (firsts[1:] < firsts[:-1]).any() or (lasts[1:] < lasts[:-1]).any():
        # Stable: rows of a pane keep their order of arrival.
        order = np.lexsort((lasts, firsts))
        firsts, lasts = firsts[order], lasts[order]
    for first, last, at in runs_of(firsts, lasts):
        if first <= last:
            yield first, last, at if order is None else order[at]


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
