"""Ring buffer of the latest observations."""

from __future__ import annotations

import numpy as np

from replica.freshness.arrays import FloatArray


class RingBuffer:
    """Last ``room`` observations of ``width`` figures each; a larger batch is sampled evenly.

    >>> last = RingBuffer(room=3, width=1)
    >>> for values in ([1.0, 2.0], [3.0], [4.0]):
    ...     last.add(np.array(values)[:, None])
    >>> last.figures[:, 0].tolist(), last.seen
    ([4.0, 2.0, 3.0], 4)
    """

    def __init__(self, room: int, width: int) -> None:
        self.figures: FloatArray = np.empty((0, width))
        self.seen = 0
        self._room = room
        self._next = 0

    def add(self, figures: FloatArray) -> None:
        """Take in some observations, one per line. O(observations)."""
        self.seen += len(figures)
        if len(figures) > self._room:
            figures = figures[np.linspace(0, len(figures) - 1, self._room).astype(np.int64)]
        free = self._room - len(self.figures)
        self.figures = np.concatenate([self.figures, figures[:free]])
        rest = figures[free:]
        places = (self._next + np.arange(len(rest))) % self._room
        self.figures[places] = rest
        self._next = (self._next + len(rest)) % self._room

    def state(self) -> FloatArray:
        """Return the index of the oldest, the number seen, and the observations, as one array."""
        return np.concatenate([[self._next, self.seen], self.figures.ravel()])

    def resume(self, state: FloatArray) -> None:
        """Continue from a state; raises ``ValueError`` if it is invalid."""
        self._next, self.seen = int(state[0]), int(state[1])
        self.figures = np.array(state[2:], np.float64).reshape(-1, self.figures.shape[1])
        if len(self.figures) > self._room or not 0 <= self._next < self._room:
            raise ValueError("more observations than there is room for")
