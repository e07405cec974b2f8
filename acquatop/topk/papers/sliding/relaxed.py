"""Relaxed k-skyband (Section 4.2 of the paper; RA): dominated events are pruned in bulk."""

from __future__ import annotations

import heapq
import math

from acquatop.topk.papers.sliding.trees import Trees
from acquatop.topk.sliding.contract import Event

_FIRST = 4
"""Multiple of k that the candidates reach before the first pruning."""


class RelaxedSkyband:
    """K-skyband pruned when candidates exceed those left by the last pruning by a share γ.

    An arrival takes O(log L). A pruning takes O(L·log k), and O(log L) per event dropped, once for
    every γ·L arrivals at most. L is up to (1+γ)·k·ln(n/k) in random order (Lemma 4.9), and a window
    at worst.

    >>> band = RelaxedSkyband(k=1, gamma=0.5)
    >>> for event in ((5.0, 0), (1.0, 1), (2.0, 2), (3.0, 3), (4.0, 4)):
    ...     band.insert(event); band.settle()
    >>> list(band.trees.best), list(band.trees.candidates)
    ([(5.0, 0)], [(4.0, 4)])
    """

    def __init__(self, k: int, gamma: float) -> None:
        if gamma < 0:
            raise ValueError("gamma must not be negative")
        self.trees = Trees(k)
        self._gamma = gamma
        self._limit = _FIRST * k

    def leave(self, position: int) -> None:
        """Remove the event at a position, which has left the window, if held."""
        self.trees.leave(position)

    def insert(self, event: Event) -> None:
        """Add an event."""
        self.trees.insert(event)

    def settle(self) -> None:
        """Refill the best, and prune if there are too many candidates (Algorithm 3)."""
        self.trees.refill()
        if len(self.trees.candidates) >= self._limit:
            self._prune()
            self._limit = max(
                self.trees.k, math.ceil((1 + self._gamma) * len(self.trees.candidates))
            )

    def _prune(self) -> None:
        """Drop candidates that k better ones outlive (Algorithm 4).

        One pass, best first, with the k newest positions so far.
        """
        newest = [position for _, position in self.trees.best]
        heapq.heapify(newest)
        for event in list(reversed(self.trees.candidates)):
            if event[1] > newest[0]:
                heapq.heapreplace(newest, event[1])
            else:
                self.trees.drop(event)

    def _check(self) -> None:
        """Assert every invariant."""
        self.trees._check()
        assert len(self.trees.candidates) <= self._limit
