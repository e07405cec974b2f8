"""Dominator counts of ordered candidates: others that are better and expire no earlier."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import IntArray

_BLOCK = 256
_FEW = 128
"""Range of last windows below which each last window is handled on its own."""


def dominators(lasts: IntArray, most: int) -> IntArray:
    """Return how many candidates before each one have a last window no earlier than its own.

    Counts are exact below ``most``; higher ones are ``most`` at least. O(n·w) if all w last windows
    lie within a small range. Otherwise O(n·b + (n/b)·s log s) for blocks of b, with s candidates
    that have fewer than ``most`` dominators.

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
    """Process one last window after the other, the earliest first."""
    counts = np.empty(len(lasts), dtype=np.int64)
    places = np.arange(len(lasts))
    for last in each:
        # Candidates that expire earlier are gone by now. The position among the others is the count
        # of those before it.
        here = (lasts == last).nonzero()[0]
        counts[places[here]] = here
        later = (lasts > last).nonzero()[0]
        places, lasts = places[later], lasts[later]
    return counts


def _by_block(lasts: IntArray, most: int) -> IntArray:
    """Process blocks in order, searching in the sorted last windows of the blocks before."""
    counts = np.empty(len(lasts), dtype=np.int64)
    earlier = np.tri(_BLOCK, k=-1, dtype=bool)
    before = lasts[:0]
    for start in range(0, len(lasts), _BLOCK):
        block = lasts[start : start + _BLOCK]
        size = len(block)
        within = np.count_nonzero(
            (block[None, :] >= block[:, None]) & earlier[:size, :size], axis=1
        )
        counts[start : start + size] = (
            within + len(before) - np.searchsorted(before, block, side="left")
        )
        # A candidate with ``most`` dominators adds nothing: whatever it dominates, they dominate
        # too.
        matters = block[counts[start : start + size] < most]
        before = np.sort(np.concatenate((before, matters)))
    return counts
