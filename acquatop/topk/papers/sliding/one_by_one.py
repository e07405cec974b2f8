"""The paper's algorithms without a filter (SA, RA, PA): one k-skyband that gets every event."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from acquatop.topk.contract import Certainty, FloatArray, IntArray
from acquatop.topk.papers.sliding.trees import Skyband
from acquatop.topk.sliding.contract import Best, ChangeLog, Changes, Event, best_of, check_sizes


class OneByOne(ABC):
    """Common base: events are added one by one, and changes reported after each."""

    def __init__(self, n: int, band: Skyband, certainty: Certainty = Certainty.EXACT) -> None:
        check_sizes(band.trees.k, n)
        self.n = n
        self.position = 0
        self.rejected = 0
        self._band = band
        self._certainty = certainty

    @property
    def k(self) -> int:
        """Largest number of events in an answer."""
        return self._band.trees.k

    def add(self, merits: FloatArray) -> Changes:
        """Add the next events of the stream, and return how the best changed with them."""
        log = ChangeLog()
        for merit in merits.tolist():
            if merit == merit:
                self._step((merit, self.position))
            else:
                self.rejected += 1
                self._step(None)
            entered, left = self._band.trees.changed()
            if entered or left:
                log.note(self.position, entered, left)
            self.position += 1
        return log.changes()

    def top(self) -> Best:
        """Return the best of the last n events."""
        return best_of(list(self._band.trees.best), self.k, self._certainty)

    def held(self) -> IntArray:
        """Return the positions of events that may be in this or a later answer, ascending."""
        trees = self._band.trees
        return np.sort(
            np.array([position for _, position in (*trees.best, *trees.candidates)], dtype=np.int64)
        )

    def __len__(self) -> int:
        return len(self._band.trees)

    @abstractmethod
    def _step(self, event: Event | None) -> None:
        """Process the event at ``self.position``; None for one without a merit."""

    def _check(self) -> None:
        """Assert every invariant."""
        self._band._check()
        assert all(
            self.position - self.n <= position < self.position for position in self.held().tolist()
        )


class Unfiltered(OneByOne):
    """SA, RA or PA, by the k-skyband it is given.

    >>> from acquatop.topk.papers.sliding.strict import StrictSkyband
    >>> held = Unfiltered(n=3, band=StrictSkyband(k=1))
    >>> changes = held.add(np.array([5.0, 1.0, 2.0, 0.0]))
    >>> changes.after.tolist(), changes.entered.tolist(), changes.left.tolist()
    ([0, 3], [0, 2], [-1, 0])
    """

    def _step(self, event: Event | None) -> None:
        self._band.leave(self.position - self.n)
        if event is not None:
            self._band.insert(event)
        self._band.settle()
