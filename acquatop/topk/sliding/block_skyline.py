"""Array block skyline: the stream in blocks of half a window; changes of the best within each.

No arrival of a block leaves the window before the block ends. Of the earlier events, the last block
stays, and the block before it leaves event by event. So the candidates for a whole block are known
beforehand:

- Of the last block: its best k. The k-th is a *bar*, as k better ones stay.
- Of the leaving block: the events above the bar, found by one array comparison. Of these, only
  those that fewer than k newer ones beat, found by one backward scan
  (:mod:`acquatop.topk.sliding.backward_scan`).
- Of the arrivals: those not below the bar, again found by one comparison.

In random order these are about k per block, however long it is. Only they are handled one by one,
as they come and go (:mod:`acquatop.topk.sliding.live_top`). No k-skyband is held and no dominators
are counted from block to block: this would only save the merits of the last block, and takes more
time than comparing them.
"""

from __future__ import annotations

import math

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.sliding.backward_scan import undominated
from acquatop.topk.sliding.contract import Best, ChangeLog, Changes, check_sizes
from acquatop.topk.sliding.live_top import LiveTop

_CHUNK = 16_384
"""Largest number of arrivals that are compared with the same bar."""
_CHUNK_WITHOUT_BAR = 256
"""The same while fewer than k events stay: then each arrival is handled."""


class BlockSkyline:
    """The exact best k of the last n events, as arrays.

    An event costs three array comparisons and its share of one O(b) partition per block. About 4k/n
    of the events, in random order, also cost a few microseconds each. If every event changes the
    best, as on a stream that only rises or falls, this holds for all events. Memory: the merits of
    a window, 8 bytes each, and the events that are handled one by one.

    >>> held = BlockSkyline(k=2, n=3)
    >>> changes = held.add(np.array([5.0, 9.0, 7.0, 1.0, 2.0]))
    >>> list(zip(changes.after.tolist(), changes.entered.tolist(), changes.left.tolist()))
    [(0, 0, -1), (1, 1, -1), (2, 2, 0), (4, 4, 1)]
    >>> held.top().positions.tolist()
    [2, 4]
    """

    def __init__(self, k: int, n: int) -> None:
        """Ask for the best ``k`` of ``n`` events."""
        check_sizes(k, n)
        self.k = k
        self.n = n
        self.position = 0
        self.rejected = 0
        self._block = np.full(half(n), np.nan)
        """Merits of the open block; those of the leaving block at positions not yet filled."""
        self._filled = 0
        self._last = np.full(half(n), np.nan)
        self._live = LiveTop(k, n, (), -1)

    def add(self, merits: FloatArray) -> Changes:
        """Add the next events of the stream, and return how the best changed with them."""
        log = ChangeLog()
        start = 0
        while start < len(merits):
            if self._filled == len(self._block):
                self._begin()
            self._live.trim()
            longest = _CHUNK if self._live.bar > -math.inf else _CHUNK_WITHOUT_BAR
            stop = min(len(merits), start + longest, start + len(self._block) - self._filled)
            self._take(merits[start:stop], log)
            start = stop
        return log.changes()

    def top(self) -> Best:
        """Return the best of the last n events."""
        return self._live.top()

    def held(self) -> IntArray:
        """Return the positions of events that may be in this or a later answer, ascending. O(n)."""
        window = self.window()
        return undominated(window, self.k)[::-1] + self.position - len(window)

    def __len__(self) -> int:
        return min(self.position, self.n)

    def _take(self, merits: FloatArray, log: ChangeLog) -> None:
        """Add events that fit into the block."""
        self._block[self._filled : self._filled + len(merits)] = merits
        if math.isnan(merits.min()):
            self.rejected += int(np.count_nonzero(np.isnan(merits)))
        passing = (merits >= self._live.bar).nonzero()[0]
        arrivals = zip(merits[passing].tolist(), (passing + self.position).tolist(), strict=True)
        self._filled += len(merits)
        self.position += len(merits)
        self._live.go_on(arrivals, self.position - 1, log)

    def _begin(self) -> None:
        """Begin the next block with the earlier events that can be among the best within it."""
        leaving, last = self._last, self._block
        start = self.position - len(last)
        until = self.position + len(last) - 1 - self.n
        bar = _bar(last[until + 1 - start :], self.k)
        # An event that ties with the bar is older than the k that stay, and so worse.
        above = (leaving > bar if bar > -math.inf else leaving == leaving).nonzero()[0]
        above = above[undominated(leaving[above], self.k)]
        best = (last >= bar).nonzero()[0]
        positions = np.concatenate((above - len(leaving), best)) + start
        merits = np.concatenate((leaving[above], last[best]))
        inside = positions >= self.position - self.n
        events = zip(merits[inside].tolist(), positions[inside].tolist(), strict=True)
        self._live = LiveTop(self.k, self.n, events, until)
        self._last, self._block, self._filled = last, leaving, 0

    def window(self) -> FloatArray:
        """Return the merits of the last n events, oldest first; NaN before the first."""
        return np.concatenate(
            (self._block[self._filled :], self._last, self._block[: self._filled])
        )[-self.n :]

    def _check(self) -> None:
        """Assert every invariant. O(n log n)."""
        self._live._check()
        assert 0 <= self._filled <= len(self._block) == len(self._last) == half(self.n)
        window = self.window()
        for merit, position in self._live.events:
            assert self.position - self.n <= position < self.position
            assert window[position - self.position] == merit
        best = np.sort(window[~np.isnan(window)])[-self.k :]
        assert self.top().merits.tolist() == best[::-1].tolist()


def half(n: int) -> int:
    """Return the events per block: half a window, rounded up.

    Two blocks hold a window, and no event leaves within its own block.

    >>> half(40_000), half(1)
    (20000, 1)
    """
    return (n + 1) // 2


def _bar(merits: FloatArray, k: int) -> float:
    """Return the k-th best merit; minus infinity if there are fewer.

    >>> _bar(np.array([3.0, np.nan, 5.0, 4.0]), 2), _bar(np.array([3.0, np.nan]), 2)
    (4.0, -inf)
    """
    if len(merits) < k:
        return -math.inf
    # NaN is sorted behind all numbers.
    bar = -float(np.partition(-merits, k - 1)[k - 1])
    return -math.inf if math.isnan(bar) else bar
