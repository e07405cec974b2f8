"""Aggregates of all keys over the panes of the current window."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat

import numpy as np
import numpy.typing as npt

from acquatop.topk.aggregates.exact_sums import ExactSums
from acquatop.topk.aggregates.extremes import Extremes
from acquatop.topk.aggregates.multi_aggregate import Columnwise, MultiAggregate, Valuewise
from acquatop.topk.aggregates.partials import (
    NEVER,
    Accumulator,
    At,
    Counted,
    Folding,
    Partial,
    add_to,
    raise_to,
    take_from,
)
from acquatop.topk.contract import AnyArray, FloatArray, IntArray


class AggregateKind(enum.StrEnum):
    """Aggregate functions over a key's events."""

    COUNT = "count"
    SUM = "sum"
    MIN = "min"
    MAX = "max"
    AVG = "avg"


def folding_of(aggregates: Sequence[AggregateKind]) -> MultiAggregate:
    """Return the folding that computes some aggregates together."""
    return MultiAggregate([_kind_of(each) for each in aggregates])


def _kind_of(aggregate: AggregateKind) -> Folding[AnyArray, FloatArray]:
    if aggregate is AggregateKind.COUNT:
        return Counted()
    if aggregate in (AggregateKind.SUM, AggregateKind.AVG):
        return ExactSums()
    return Extremes(smallest=aggregate is AggregateKind.MIN)


class Totals:
    """Columns over all keys: counts and newest times once, shared by all aggregates.

    Adding or removing a pane of m keys costs O(m). Results that many calls need are cached: the
    keys alive, and the aggregates of all keys once as many have been asked for as there are keys.
    The cache takes as much memory again.
    """

    def __init__(self, aggregates: Sequence[AggregateKind]) -> None:
        self._aggregates = aggregates
        self.newest_gone = NEVER
        self._size = 0
        self._counts = np.empty(0, dtype=np.int64)
        self._newest = np.empty(0, dtype=np.int64)
        self.folding = folding_of(aggregates)
        self._inside: dict[int, list[Partial]] = {}
        self._changed()

    def _changed(self) -> None:
        """Drop the cached results."""
        self._keys: IntArray | None = None
        self._finished_all: tuple[FloatArray, ...] | None = None
        self._asked = 0

    def grow(self, size: int) -> None:
        """Make room for more keys."""
        counts, newest = np.zeros(size, dtype=np.int64), np.full(size, NEVER)
        counts[: self._size], newest[: self._size] = self._counts, self._newest
        self._changed()
        self._size, self._counts, self._newest = size, counts, newest
        self.folding.grow(size)

    def enter(self, last: int, partial: Partial) -> None:
        """Add a pane's partial, which counts until after the window ``last``."""
        self._inside.setdefault(last, []).append(partial)
        self._changed()
        at = partial.at
        add_to(self._counts, at, partial.counts)
        raise_to(self._newest, at, partial.newest)
        self.folding.enter(last, partial)

    def leave(self, window: int) -> list[Partial]:
        """Remove and return the partials whose last window is before this one."""
        gone = [
            partial
            for last in sorted(self._inside)
            if last < window
            for partial in self._inside.pop(last)
        ]
        for partial in gone:
            take_from(self._counts, partial.at, partial.counts)
            self.newest_gone = max(self.newest_gone, int(partial.newest.max(initial=NEVER)))
        if gone:
            self.folding.leave(window, gone)
            self._changed()
        return gone

    def withdraw(
        self,
        last: int,
        taken: Partial,
        folder: Accumulator[Valuewise, Columnwise],
        *,
        afresh: bool,
    ) -> None:
        """Remove some events from the partials with the last window ``last``. O(their sizes).

        If ``afresh``, ``taken`` holds what remains of the events' keys there: newest times, and all
        else that subtraction cannot give.
        """
        self._changed()
        before = self._inside.pop(last)
        if afresh:
            wanted = np.zeros(self._size, dtype=np.bool_)
            wanted[taken.at] = True
            for partial in before:
                partial.newest[wanted[partial.at]] = NEVER
                self.folding.clear(partial.columns, wanted[partial.at])
        after = folder.together([*before, taken])
        if not isinstance(after.at, slice):
            kept = np.flatnonzero(after.counts)
            after = after.only(kept, after.at[kept])
        self._inside[last] = [after]
        add_to(self._counts, taken.at, taken.counts)
        self.folding.exchange(last, before, taken, after)

    def look_up(self, keys: IntArray) -> None:
        """Recompute the newest event times of some keys from the current partials.

        O(their sizes).
        """
        wanted = np.zeros(self._size, dtype=np.bool_)
        wanted[keys] = True
        self._newest[keys] = NEVER
        for _, partial in self.inside():
            at = np.arange(len(partial.counts)) if isinstance(partial.at, slice) else partial.at
            hits = np.flatnonzero(wanted[at])
            self._newest[at[hits]] = np.maximum(self._newest[at[hits]], partial.newest[hits])

    def inside(self) -> Iterator[tuple[int, Partial]]:
        """Yield the current partials, each with its last window."""
        return ((last, partial) for last, partials in self._inside.items() for partial in partials)

    def rebuild(self, inside: Iterable[tuple[int, Partial]]) -> None:
        """Start again with only these partials. O(their sizes, and all keys)."""
        size, self._size = self._size, 0
        self._counts, self._newest = self._counts[:0], self._newest[:0]
        self.folding, self._inside = folding_of(self._aggregates), {}
        self.grow(size)
        for last, partial in inside:
            self.enter(last, partial)

    def keys(self) -> IntArray:
        """Return all keys with an event in the window, ascending. O(keys) after a change.

        The array is read-only.
        """
        if self._keys is None:
            self._keys = np.flatnonzero(self._counts)
            self._keys.flags.writeable = False
        return self._keys

    def alive(self, keys: At) -> npt.NDArray[np.bool_]:
        """Return a mask of the keys that have an event in the window."""
        return self._counts[keys] > 0

    def aggregates(self, keys: At) -> tuple[FloatArray, ...]:
        """Return each aggregate of keys that are alive; NaN for the sum of both infinities.

        For other keys the value is arbitrary.
        """
        counts = self._counts[keys]
        self._asked += len(counts)
        if self._finished_all is None and self._asked > self._size:
            self._finished_all = self._read(slice(None), self._counts)
        if self._finished_all is None:
            return self._read(keys, counts)
        return tuple(
            column[keys].copy() if isinstance(keys, slice) else column[keys]
            for column in self._finished_all
        )

    def _read(self, keys: At, counts: IntArray) -> tuple[FloatArray, ...]:
        return tuple(map(self._finished, self._aggregates, self.folding.read(keys), repeat(counts)))

    def _finished(self, aggregate: AggregateKind, read: FloatArray, counts: IntArray) -> FloatArray:
        if aggregate is AggregateKind.COUNT:
            return counts.astype(np.float64)
        return read / np.maximum(counts, 1) if aggregate is AggregateKind.AVG else read

    def rolled_up(self, keys: IntArray, groups: IntArray, size: int) -> tuple[IntArray, Columnwise]:
        """Return the newest times and the aggregates of groups of keys that are alive.

        Groups are numbered below ``size``, and each has a key; a key may be in several. O(m) per
        aggregate.
        """
        counts, newest = np.zeros(size, dtype=np.int64), np.full(size, NEVER)
        np.add.at(counts, groups, self._counts[keys])
        np.maximum.at(newest, groups, self.newest(keys))
        read = self.folding.rolled_up(keys, groups, size)
        return newest, tuple(map(self._finished, self._aggregates, read, repeat(counts)))

    def newest(self, keys: IntArray) -> IntArray:
        """Return the newest event times of keys that are alive.

        O(m), unless panes overlap in time. A stored time is certain only if it is newer than all
        times that have left; the others are looked up in the current partials.
        """
        newest = self._newest[keys]
        doubtful = newest <= self.newest_gone
        if doubtful.any():
            self.look_up(keys[doubtful])
            newest = self._newest[keys]
        return newest

    def _check(self) -> None:
        """Assert that the columns equal those computed afresh from the current partials."""
        afresh = Totals(self._aggregates)
        afresh.grow(self._size)
        for last, partial in self.inside():
            afresh.enter(last, partial)
        assert np.array_equal(afresh._counts, self._counts)
        alive = np.flatnonzero(self._counts)
        assert (self._counts[alive] > 0).all()
        assert np.array_equal(afresh.newest(alive), self.newest(alive))
        for ours, theirs in zip(self.aggregates(alive), afresh.aggregates(alive), strict=True):
            assert np.array_equal(ours, theirs, equal_nan=True)
