"""Strict k-skyband (Definition 3.8 of the paper; SA, after Böhm et al. 2007).

No dominated event is ever held.
"""

from __future__ import annotations

from acquatop.topk.papers.sliding.trees import Trees
from acquatop.topk.sliding.contract import Event


class StrictSkyband:
    """K-skyband that counts each event's better newer ones, and drops it at the k-th.

    An arrival takes O(L) for the L events held that are worse: k·ln(n/k) in random order, a window
    at worst.

    >>> band = StrictSkyband(k=1)
    >>> for event in ((5.0, 0), (3.0, 1), (4.0, 2)):
    ...     band.insert(event); band.settle()
    >>> list(band.trees.best), list(band.trees.candidates)
    ([(5.0, 0)], [(4.0, 2)])
    """

    def __init__(self, k: int) -> None:
        self.trees = Trees(k)
        self._dominators: dict[int, int] = {}
        self._newest = -1

    def leave(self, position: int) -> None:
        """Remove the event at a position, which has left the window, if held."""
        if self.trees.leave(position):
            del self._dominators[position]

    def insert(self, event: Event) -> None:
        """Add an event: one more dominator for all that are worse and older."""
        trees, position = self.trees, event[1]
        worse = [*trees.candidates.irange(maximum=event), *trees.best.irange(maximum=event)]
        dominators = 0
        if position < self._newest:
            # A filter has held it back, and newer events came before it.
            better = (*trees.candidates.irange(minimum=event), *trees.best.irange(minimum=event))
            dominators = sum(other[1] > position for other in better)
        self._newest = max(self._newest, position)
        trees.insert(event)
        self._dominators[position] = dominators
        for other in worse:
            if other[1] < position:
                self._dominators[other[1]] += 1
                if self._dominators[other[1]] >= trees.k:
                    self._drop(other)
        if dominators >= trees.k:
            self._drop(event)

    def settle(self) -> None:
        """Refill the best."""
        self.trees.refill()

    def _drop(self, event: Event) -> None:
        # As k are better, it is among the candidates by now.
        self.trees.drop(event)
        del self._dominators[event[1]]

    def _check(self) -> None:
        """Assert every invariant. O(L²)."""
        self.trees._check()
        events = [*self.trees.best, *self.trees.candidates]
        assert set(self._dominators) == {position for _, position in events}
        for event in events:
            held = sum(other > event and other[1] > event[1] for other in events)
            assert held <= self._dominators[event[1]] < self.trees.k
