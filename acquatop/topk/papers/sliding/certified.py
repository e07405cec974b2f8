"""Probabilistic k-skyband that detects possible errors: the detector of the hybrid."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Self

from acquatop.topk.papers.sliding.probabilistic import ProbabilisticSkyband
from acquatop.topk.sliding.contract import Event


class CertifiedSkyband(ProbabilisticSkyband):
    """Probabilistic k-skyband with the best of the dropped events that are still in the window.

    If the last of the best k beats these, nothing is missing, whatever the stream is like;
    otherwise something may be. A dropped event that a newer dropped one beats never matters. So in
    random order O(log n) are remembered; for a rising or falling stream it is one or all.

    >>> band = CertifiedSkyband(k=1, limit=1)
    >>> for event in ((5.0, 0), (4.0, 1), (3.0, 2)):
    ...     band.insert(event); band.settle()
    >>> band.certain
    True
    >>> band.leave(0); band.leave(1); band.settle(); band.certain
    False
    """

    def __init__(self, k: int, limit: int) -> None:
        super().__init__(k, limit)
        self._gone: list[Event] = []
        """Dropped events by position, each better than all after it."""

    @classmethod
    def of(
        cls,
        k: int,
        limit: int,
        held: Iterable[Event],
        dropped: Iterable[Event],
        threshold: float,
    ) -> Self:
        """Return a band with what another has held and dropped."""
        band = cls(k, limit)
        for event in held:
            band.trees.insert(event)
        band.trees.refill()
        band.trees.forget_changes()
        band._gone, band.threshold = list(dropped), threshold
        return band

    @property
    def dropped(self) -> Sequence[Event]:
        """Dropped events of the window that may matter, by position, each better than the next."""
        return tuple(self._gone)

    @property
    def best_dropped(self) -> Event | None:
        """Best of the dropped events that are still in the window."""
        return self._gone[0] if self._gone else None

    @property
    def certain(self) -> bool:
        """True if the best k are certainly the window's."""
        dropped, best = self.best_dropped, self.trees.best
        return dropped is None or (len(best) == self.trees.k and dropped < best[0])

    def leave(self, position: int) -> None:
        """Remove the event at a position, which has left the window."""
        super().leave(position)
        if self._gone and self._gone[0][1] == position:
            del self._gone[0]

    def remember(self, event: Event) -> None:
        """Record an event as dropped, now or before this band began. O(log of those remembered)."""
        gone = self._gone
        at = len(gone)
        if at and gone[-1][1] > event[1]:
            at = bisect_left(gone, event[1], key=_position)
            if gone[at] > event:
                return
        start = at
        while start and gone[start - 1] < event:
            start -= 1
        gone[start:at] = [event]

    def _let_go(self, event: Event) -> None:
        self.remember(event)

    def _check(self) -> None:
        """Assert every invariant."""
        super()._check()
        assert self._gone == sorted(self._gone, key=_position)
        assert self._gone == sorted(self._gone, reverse=True)


def _position(event: Event) -> int:
    return event[1]
