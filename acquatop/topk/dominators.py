"""Count who dominates whom among candidates that stand in order: better, and expiring no earlier."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import IntArray

_BLOCK = 256
_FEW = 128
"""How many different last windows are looked at one by one."""


def dominators(lasts: IntArray, most: int) -> IntArray:
    """Return how many before each have a last window no earlier than its own, counting to ``most`` at least.

    O(n·w) for w last windows where these are few; O(n·b + n log n) for blocks of b where they are many.

    >>> dominators(np.array([3, 5, 3, 4]), 10).tolist()
    [0, 0, 2, 1]
    """
    if not len(lasts):
        return lasts
    lowest = int(lasts.min())
    if int(lasts.max()) - lowest < _FEW:
        return _by_last(lasts, (np.bincount(lasts - lowest).nonzero()[0] + lowest).tolist())
    return _by_block(lasts, most)


def _by_last(lasts: IntArray, each: list[int]) -> IntArray:
    """Look at one last window after the other, the earliest first."""
    counts = np.empty(len(lasts), dtype=np.int64)
    places = np.arange(len(lasts))
    for last in each:
        # Those that expire earlier are gone by now: where one stands among the others says how many are before it.
        here = (lasts == last).nonzero()[0]
        counts[places[here]] = here
        later = (lasts > last).nonzero()[0]
        places, lasts = places[later], lasts[later]
    return counts


def _by_block(lasts: IntArray, most: int) -> IntArray:
    """Search each block in the sorted ones before it."""
    counts = np.empty(len(lasts), dtype=np.int64)
    earlier = np.tri(_BLOCK, k=-1, dtype=bool)
    before = lasts[:0]
    for start in range(0, len(lasts), _BLOCK):
        block = lasts[start : start + _BLOCK]
        size = len(block)
        within = np.count_nonzero((block[None, :] >= block[:, None]) & earlier[:size, :size], axis=1)
        counts[start : start + size] = within + len(before) - np.searchsorted(before, block, side="left")
        # Who is dominated by as many as are asked for dominates no one that these do not.
        matters = block[counts[start : start + size] < most]
        before = np.sort(np.concatenate((before, matters)))
    return counts
