"""Every key's aggregate over the panes that are in the current window."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator

import numpy as np
import numpy.typing as npt

from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.exact_sums import ExactSums
from acquatop.topk.extremes import Extremes
from acquatop.topk.partials import NEVER, At, Counted, Folding, Partial, add_to, raise_to, take_from


class Aggregate(enum.StrEnum):
    """What is known of a key's events together."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


def folding_of(aggregate: Aggregate) -> Folding:
    """Return how an aggregate is kept."""
    if aggregate is Aggregate.COUNT:
        return Counted()
    if aggregate in (Aggregate.SUM, Aggregate.AVG):
        return ExactSums()
    return Extremes(smallest=aggregate is Aggregate.MIN)


class Totals:
    """Columns over all keys. A pane of m keys comes in and goes in O(m)."""

    def __init__(self, aggregate: Aggregate) -> None:
        self.aggregate = aggregate
        self.newest_gone = NEVER
        self._size = 0
        self._counts = np.empty(0, dtype=np.int64)
        self._newest = np.empty(0, dtype=np.int64)
        self.folding = folding_of(aggregate)
        self._inside: dict[int, list[Partial]] = {}

    def grow(self, size: int) -> None:
        """Make place for more keys."""
        counts, newest = np.zeros(size, dtype=np.int64), np.full(size, NEVER)
        counts[: self._size], newest[: self._size] = self._counts, self._newest
        self._size, self._counts, self._newest = size, counts, newest
        self.folding.grow(size)

    def enter(self, last: int, partial: Partial) -> None:
        """Take in what a pane adds, until after the window ``last``."""
        self._inside.setdefault(last, []).append(partial)
        at = partial.at
        add_to(self._counts, at, partial.counts)
        raise_to(self._newest, at, partial.newest)
        self.folding.enter(last, partial)

    def leave(self, window: int) -> list[Partial]:
        """Take out what was in until some window before this one, and return it."""
        gone = [partial for last in sorted(self._inside) if last < window for partial in self._inside.pop(last)]
        for partial in gone:
            take_from(self._counts, partial.at, partial.counts)
            self.newest_gone = max(self.newest_gone, int(partial.newest.max(initial=NEVER)))
        if gone:
            self.folding.leave(window, gone)
        return gone

    def inside(self) -> Iterator[tuple[int, Partial]]:
        """Iterate over what is in, each with the last window that it is in."""
        return ((last, partial) for last, partials in self._inside.items() for partial in partials)

    def rebuild(self, inside: Iterable[tuple[int, Partial]]) -> None:
        """Begin again with only these in. O(their sizes, and all keys)."""
        size, self._size = self._size, 0
        self._counts, self._newest = self._counts[:0], self._newest[:0]
        self.folding, self._inside = folding_of(self.aggregate), {}
        self.grow(size)
        for last, partial in inside:
            self.enter(last, partial)

    def alive(self, keys: At) -> npt.NDArray[np.bool_]:
        """Return which keys have an event in the window."""
        return self._counts[keys] > 0

    def aggregates(self, keys: At) -> FloatArray:
        """Return the aggregates of keys that are alive; NaN where both infinities were to be added.

        Of keys that are not, anything.
        """
        if self.aggregate is Aggregate.COUNT:
            return self._counts[keys].astype(np.float64)
        read = self.folding.read(keys)
        return read / np.maximum(self._counts[keys], 1) if self.aggregate is Aggregate.AVG else read

    def newest(self, keys: IntArray) -> IntArray:
        """Return the newest event times of keys that are alive.

        O(m), unless panes overlap in time: a time noted is surely right only if it is newer than
        all that has gone; the others are looked up in what is in.
        """
        newest = self._newest[keys]
        doubtful = newest <= self.newest_gone
        if doubtful.any():
            self._look_up(keys[doubtful])
            newest = self._newest[keys]
        return newest

    def _look_up(self, keys: IntArray) -> None:
        wanted = np.zeros(self._size, dtype=np.bool_)
        wanted[keys] = True
        self._newest[keys] = NEVER
        for _, partial in self.inside():
            at = np.arange(len(partial.counts)) if isinstance(partial.at, slice) else partial.at
            hits = np.flatnonzero(wanted[at])
            self._newest[at[hits]] = np.maximum(self._newest[at[hits]], partial.newest[hits])

    def _check(self) -> None:
        """Assert that the columns are what they are when only what is in is summed afresh."""
        afresh = Totals(self.aggregate)
        afresh.grow(self._size)
        for last, partial in self.inside():
            afresh.enter(last, partial)
        assert np.array_equal(afresh._counts, self._counts)
        alive = np.flatnonzero(self._counts)
        assert (self._counts[alive] > 0).all()
        assert np.array_equal(afresh.newest(alive), self.newest(alive))
        assert np.array_equal(afresh.aggregates(alive), self.aggregates(alive), equal_nan=True)
