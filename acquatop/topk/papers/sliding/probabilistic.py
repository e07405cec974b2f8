"""Probabilistic k-skyband (Section 4.1 of the paper;

PA): a fixed number of candidates, the best.
"""

from __future__ import annotations

import math

from acquatop.topk.papers.sliding.trees import Trees
from acquatop.topk.sliding.contract import Event


class ProbabilisticSkyband:
    """The best k and ``limit`` more; worse events are dropped, dominated or not.

    Answers may be wrong. For streams in random order, and a limit from
    :mod:`acquatop.topk.papers.sliding.limit`, at most σ events per window are missed on average. If
    order and merit are related, nearly all may be. An arrival below the threshold costs one
    comparison; the others, about (k+limit)/n of all in random order, cost O(log(k+limit)) each.

    >>> band = ProbabilisticSkyband(k=1, limit=1)
    >>> for event in ((5.0, 0), (3.0, 1), (4.0, 2), (1.0, 3)):
    ...     band.insert(event); band.settle()
    >>> list(band.trees.best), list(band.trees.candidates), band.threshold
    ([(5.0, 0)], [(4.0, 2)], 4.0)
    """

    def __init__(self, k: int, limit: int) -> None:
        if limit < 1:
            raise ValueError("limit must be at least 1")
        self.trees = Trees(k)
        self.limit = limit
        self.threshold = -math.inf
        """Merit below which an event is dropped at once."""

    def leave(self, position: int) -> None:
        """Remove the event at a position, which has left the window, if held (Algorithm 2)."""
        if self.trees.leave(position):
            # There is room for one more.
            self.threshold = -math.inf

    def insert(self, event: Event) -> None:
        """Add an event, if it is not below the threshold (Algorithm 1)."""
        if event[0] < self.threshold:
            self._let_go(event)
        else:
            self.trees.insert(event)

    def settle(self) -> None:
        """Refill the best, drop the last candidates if there are too many, set the threshold."""
        trees = self.trees
        trees.refill()
        while len(trees.candidates) > self.limit:
            self._let_go(trees.drop_last())
        if len(trees.candidates) == self.limit:
            self.threshold = trees.candidates[0][0]

    def _let_go(self, event: Event) -> None:
        """Drop an event that is still in the window."""

    def _check(self) -> None:
        """Assert every invariant."""
        self.trees._check()
        assert len(self.trees.candidates) <= self.limit
        assert all(merit >= self.threshold for merit, _ in self.trees.candidates)
