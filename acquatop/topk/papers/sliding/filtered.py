"""Filter before the k-skyband (Section 5 of the paper): SASF, SARF, SAPF, RASF, RARF and RAPF.

The newest b events wait in a buffer. The filter is any k-skyband of *these*. An event that is not
among its best k cannot be among the window's best before it leaves the buffer (Theorem 5.1). So it
need not enter the query's k-skyband until then; most are dominated by then and never do.

The theorem holds for buffers up to (n+1)/2. With one event more, an event that kept another from
the best may leave the window while the other still waits.
"""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import IntArray
from acquatop.topk.papers.sliding.one_by_one import OneByOne
from acquatop.topk.papers.sliding.trees import Skyband
from acquatop.topk.sliding.contract import Event


class Filtered(OneByOne):
    """Exact with any filter: one that drops too much only keeps fewer events waiting.

    >>> from acquatop.topk.papers.sliding.probabilistic import ProbabilisticSkyband
    >>> from acquatop.topk.papers.sliding.relaxed import RelaxedSkyband
    >>> held = Filtered(3, RelaxedSkyband(1, gamma=0.2), ProbabilisticSkyband(1, limit=1), buffer=2)
    >>> changes = held.add(np.array([5.0, 1.0, 2.0, 0.0]))
    >>> changes.after.tolist(), changes.entered.tolist(), changes.left.tolist()
    ([0, 3], [0, 2], [-1, 0])
    """

    def __init__(self, n: int, band: Skyband, before: Skyband, buffer: int) -> None:
        """Put the filter ``before``, over the newest ``buffer`` events, before ``band``."""
        super().__init__(n, band)
        if not 1 <= buffer <= (n + 1) // 2:
            raise ValueError(
                f"a buffer has 1 to {(n + 1) // 2} events, half a window, not {buffer}"
            )
        if before.trees.k != band.trees.k:
            raise ValueError("the filter and the query must have the same k")
        self._filter = before
        self._buffer = buffer
        self._waiting: dict[int, float] = {}

    def held(self) -> IntArray:
        """Return the positions of events that may be in this or a later answer, ascending."""
        return np.sort(np.concatenate((super().held(), np.array([*self._waiting], dtype=np.int64))))

    def __len__(self) -> int:
        return super().__len__() + len(self._waiting)

    def _step(self, event: Event | None) -> None:
        self._filter.leave(self.position - self._buffer)
        self._band.leave(self.position - self.n)
        if event is not None:
            self._filter.insert(event)
        self._filter.settle()
        self._filter.trees.forget_changes()
        if event is not None:
            self._first_attempt(event)
        self._second_attempt(self.position - self._buffer)
        self._band.settle()

    def _first_attempt(self, event: Event) -> None:
        """Pass on an arrival if it is among the filter's best; otherwise let it wait."""
        if self._filter.trees.among_best(event):
            self._band.insert(event)
        else:
            self._waiting[event[1]] = event[0]

    def _second_attempt(self, position: int) -> None:
        """Pass on a waiting event that leaves the buffer, unless the filter's best dominate it.

        These are newer.
        """
        merit = self._waiting.pop(position, None)
        if merit is not None and self._filter.trees.among_best((merit, position)):
            self._band.insert((merit, position))

    def _check(self) -> None:
        """Assert every invariant."""
        super()._check()
        self._filter._check()
        held = {
            position for _, position in (*self._filter.trees.best, *self._filter.trees.candidates)
        }
        assert all(
            self.position - self._buffer <= position < self.position
            for position in held | set(self._waiting)
        )
        assert len(set(self.held().tolist())) == len(self), "an event waits and is held"
