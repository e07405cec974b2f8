"""Several aggregates of the same events. Counts and newest times are stored only once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from acquatop.topk.aggregates.partials import At, BoolArray, Columns, Folding, Partial
from acquatop.topk.contract import AnyArray, FloatArray, IntArray

Columnwise: TypeAlias = tuple[FloatArray, ...]
"""One column for each aggregate."""
Valuewise: TypeAlias = tuple[AnyArray, ...]
"""One column of values for each aggregate: of doubles, or of 64-bit integers."""

_STRIDE = 1 << 12
"""Offset between the column numbers of neighbouring kinds; more than there are bins."""
_LOWEST = -(1 << 11)


class MultiAggregate:
    """Several kinds of aggregates, each with its own values. Costs add up."""

    def __init__(self, kinds: Sequence[Folding[AnyArray, FloatArray]]) -> None:
        self._kinds = kinds

    def fold(self, slots: IntArray, size: int, values: Valuewise) -> Columns:
        """Return the columns of each kind's values."""
        each = (
            kind.fold(slots, size, column) for kind, column in zip(self._kinds, values, strict=True)
        )
        return _joined(list(each))

    def unfold(
        self,
        slots: IntArray,
        size: int,
        values: Valuewise,
        left: tuple[IntArray, Valuewise] | None,
    ) -> Columns:
        """Return the columns that remove each kind's values."""
        others = [None] * len(values) if left is None else [(left[0], column) for column in left[1]]
        each = zip(self._kinds, values, others, strict=True)
        return _joined([kind.unfold(slots, size, column, other) for kind, column, other in each])

    def clear(self, columns: Columns, at: BoolArray) -> None:
        """Clear some keys in a partial's columns."""
        for number, kind in enumerate(self._kinds):
            kind.clear(_own(columns, number), at)

    def merge(self, places: Sequence[At], columns: Sequence[Columns], size: int) -> Columns:
        """Return the merged columns of several partials."""
        own = [[_own(each, at) for each in columns] for at in range(len(self._kinds))]
        return _joined(
            [kind.merge(places, each, size) for kind, each in zip(self._kinds, own, strict=True)]
        )

    def grow(self, size: int) -> None:
        """Make room for more keys."""
        for kind in self._kinds:
            kind.grow(size)

    def enter(self, last: int, partial: Partial) -> None:
        """Add a partial, until after the window ``last``."""
        for at, kind in enumerate(self._kinds):
            kind.enter(last, _part(partial, at))

    def leave(self, window: int, gone: Sequence[Partial]) -> None:
        """Remove the partials whose last window is before this one."""
        for at, kind in enumerate(self._kinds):
            kind.leave(window, [_part(each, at) for each in gone])

    def exchange(
        self, last: int, before: Sequence[Partial], change: Partial, after: Partial
    ) -> None:
        """Replace several partials by one: their merger with a change."""
        for at, kind in enumerate(self._kinds):
            kind.exchange(
                last, [_part(each, at) for each in before], _part(change, at), _part(after, at)
            )

    def read(self, at: At) -> Columnwise:
        """Return the aggregates of each kind."""
        return tuple(kind.read(at) for kind in self._kinds)

    def rolled_up(self, at: IntArray, groups: IntArray, size: int) -> Columnwise:
        """Return the aggregates of each kind, of groups of keys."""
        return tuple(kind.rolled_up(at, groups, size) for kind in self._kinds)


def _joined(each: Sequence[Columns]) -> Columns:
    return {
        _STRIDE * at + bin: column
        for at, columns in enumerate(each)
        for bin, column in columns.items()
    }


def _own(columns: Columns, at: int) -> Columns:
    """Return the columns of one kind, by its own numbers."""
    start = _STRIDE * at
    return {
        bin - start: column
        for bin, column in columns.items()
        if _LOWEST <= bin - start < _LOWEST + _STRIDE
    }


def _part(partial: Partial, at: int) -> Partial:
    return Partial(partial.at, partial.counts, partial.newest, _own(partial.columns, at))
