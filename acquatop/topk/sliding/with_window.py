"""Structure for windows that slide at each event, with the merits of the window beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.sliding.block_skyline import BlockSkyline
from acquatop.topk.sliding.contract import Best, Changes, SlidingTopK
from acquatop.topk.strategies import TopKStrategy


class WindowKeeper(SlidingTopK, Protocol):
    """Structure that another one can be made from, by the merits of its window."""

    def window(self) -> FloatArray:
        """Return the merits of the last n events, oldest first; NaN before the first."""


class WithWindow:
    """Decorator that keeps the window's merits, 8 bytes each.

    An exact structure that is given them again has the same answers from then on.

    >>> held = WithWindow(BlockSkyline(k=1, n=3))
    >>> changes = held.add(np.array([5.0, 9.0, 7.0, 1.0]))
    >>> held.window().tolist(), held.top().merits.tolist(), len(held)
    ([9.0, 7.0, 1.0], [9.0], 3)
    """

    def __init__(self, structure: SlidingTopK) -> None:
        self._structure = structure
        self._recent = np.full(structure.n, np.nan)

    @property
    def k(self) -> int:
        """Largest number of events in an answer."""
        return self._structure.k

    @property
    def n(self) -> int:
        """Number of events in a window."""
        return self._structure.n

    @property
    def position(self) -> int:
        """Number of events so far."""
        return self._structure.position

    @position.setter
    def position(self, count: int) -> None:
        self._structure.position = count

    @property
    def rejected(self) -> int:
        """Number of events without a merit."""
        return self._structure.rejected

    @rejected.setter
    def rejected(self, count: int) -> None:
        self._structure.rejected = count

    def add(self, merits: FloatArray) -> Changes:
        """Add the next events of the stream, and return how the best changed with them."""
        newest = merits[-self.n :]
        if len(newest):
            end = self.position + len(merits)
            self._recent[np.arange(end - len(newest), end) % self.n] = newest
        return self._structure.add(merits)

    def window(self) -> FloatArray:
        """Return the merits of the last n events, oldest first; NaN before the first."""
        return np.roll(self._recent, -(self.position % self.n))

    def top(self) -> Best:
        """Return the best of the last n events."""
        return self._structure.top()

    def held(self) -> IntArray:
        """Return the positions of events that may be in this or a later answer, ascending."""
        return self._structure.held()

    def __len__(self) -> int:
        return min(self.position, self.n)

    def _check(self) -> None:
        """Assert every invariant."""
        self._structure._check()


@runtime_checkable
class Doubtful(WindowKeeper, Protocol):
    """Structure whose answers may miss a result by chance. It has a state of its own."""

    def take_doubts(self) -> Sequence[tuple[int, float]]:
        """Return the uncertain answers since the last call, in their order.

        Each is the position of the last event, and the best merit of what may be missing.
        """

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added."""


def open_elements(
    strategy: TopKStrategy, k: int, n: int, error: float | None, step: int
) -> WindowKeeper:
    """Return an empty structure of a strategy for the best ``k`` of ``n`` events.

    It may miss results in a share ``error`` of the answers, of which there is one every ``step``
    events.
    """
    structure = strategy.load()(k, n, *((error or 0.0, step) if strategy.errs else ()))
    is_whole = isinstance(structure, BlockSkyline | Doubtful)
    return structure if is_whole else WithWindow(structure)
