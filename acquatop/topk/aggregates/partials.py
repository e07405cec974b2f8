"""Partial aggregates of a pane, folded from its events once, so that events need not be kept.

Few keys are stored as a list, many as columns over all keys: ``at`` is a list or a slice, and
``column[at]`` reads and writes both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from acquatop.topk.contract import AnyArray, FloatArray, IntArray

At: TypeAlias = IntArray | slice
Columns: TypeAlias = dict[int, AnyArray]
"""Values that one kind of aggregate stores, one row per key."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
V = TypeVar("V")
Left: TypeAlias = Callable[[IntArray], tuple[IntArray, IntArray, V]]
"""Function from keys to their remaining events: keys, times and values."""
Values = TypeVar("Values", contravariant=True)
Aggregates = TypeVar("Aggregates", covariant=True)

NEVER = -(2**63)
"""Newest time of a key without events."""

_DENSE_EVENTS = 2
_DENSE_KEYS = 4


@dataclass(frozen=True)
class Partial:
    """Number of events, newest time and stored values per key.

    The keys are a list of distinct ones, or all below a number.
    """

    at: At
    counts: IntArray
    newest: IntArray
    columns: Columns

    def keys(self) -> IntArray:
        """Return the keys that have an event."""
        if isinstance(self.at, slice):
            return np.flatnonzero(self.counts > 0)
        return self.at

    def listed(self) -> Partial:
        """Return the same partial as a list of keys."""
        if not isinstance(self.at, slice):
            return self
        return self.only(self.keys(), self.keys())

    def only(self, at: IntArray, keys: IntArray) -> Partial:
        """Return the part at some positions, which are those of the keys."""
        columns = {bin: column[at] for bin, column in self.columns.items()}
        return Partial(keys, self.counts[at], self.newest[at], columns)


def add_to(column: AnyArray, at: At, values: AnyArray) -> None:
    """Add values to a column, at distinct positions."""
    if isinstance(at, slice):
        # Unlike ``column[at] += values``, this does not write the column back onto itself.
        np.add(column[at], values, out=column[at])
    else:
        column[at] += values


def take_from(column: AnyArray, at: At, values: AnyArray) -> None:
    """Subtract values from a column, at distinct positions."""
    if isinstance(at, slice):
        np.subtract(column[at], values, out=column[at])
    else:
        column[at] -= values


def raise_to(column: AnyArray, at: At, values: AnyArray) -> None:
    """Raise a column to values that are greater, at distinct positions."""
    if isinstance(at, slice):
        np.maximum(column[at], values, out=column[at])
    else:
        column[at] = np.maximum(column[at], values)


class Folding(Protocol[Values, Aggregates]):
    """One kind of aggregate: the columns stored per pane and per key, and how they are read."""

    def fold(self, slots: IntArray, size: int, values: Values) -> Columns:
        """Return the columns of values whose keys are numbered below ``size``."""

    def unfold(
        self, slots: IntArray, size: int, values: Values, left: tuple[IntArray, Values] | None
    ) -> Columns:
        """Return the columns that, merged with a partial's, remove values from it.

        ``left`` are the partial's other values, for keys that were cleared. None states that the
        values removed have equals in a partial that stays longer.
        """

    def clear(self, columns: Columns, at: BoolArray) -> None:
        """Clear some keys in a partial's columns, if values cannot be removed by subtraction."""

    def merge(self, places: Sequence[At], columns: Sequence[Columns], size: int) -> Columns:
        """Return the merged columns of several partials, whose keys have places among ``size``."""

    def grow(self, size: int) -> None:
        """Make room for more keys."""

    def enter(self, last: int, partial: Partial) -> None:
        """Add a partial to the keys' aggregates, until after the window ``last``."""

    def leave(self, window: int, gone: Sequence[Partial]) -> None:
        """Remove the partials whose last window is before this one."""

    def exchange(
        self, last: int, before: Sequence[Partial], change: Partial, after: Partial
    ) -> None:
        """Replace all partials with a last window by one: their merger with a change."""

    def read(self, at: At) -> Aggregates:
        """Return the aggregates of some keys; arbitrary values for keys without an event."""

    def rolled_up(self, at: IntArray, groups: IntArray, size: int) -> Aggregates:
        """Return the aggregates of groups of keys, numbered below ``size``.

        A key may be in several groups, or several times in one.
        """


class Counted:
    """Kind that stores no values: events are counted anyway."""

    def fold(self, slots: IntArray, size: int, values: AnyArray) -> Columns:
        """Return nothing."""
        return {}

    def unfold(
        self,
        slots: IntArray,
        size: int,
        values: AnyArray,
        left: tuple[IntArray, AnyArray] | None,
    ) -> Columns:
        """Return nothing."""
        return {}

    def clear(self, columns: Columns, at: BoolArray) -> None:
        """Do nothing."""

    def merge(self, places: Sequence[At], columns: Sequence[Columns], size: int) -> Columns:
        """Return nothing."""
        return {}

    def grow(self, size: int) -> None:
        """Do nothing."""

    def enter(self, last: int, partial: Partial) -> None:
        """Do nothing."""

    def leave(self, window: int, gone: Sequence[Partial]) -> None:
        """Do nothing."""

    def exchange(
        self, last: int, before: Sequence[Partial], change: Partial, after: Partial
    ) -> None:
        """Do nothing."""

    def read(self, at: At) -> FloatArray:
        """Return nothing: counts are stored elsewhere."""
        return np.empty(0)

    def rolled_up(self, at: IntArray, groups: IntArray, size: int) -> FloatArray:
        """Return nothing."""
        return np.empty(0)


@dataclass
class Numbering:
    """Numbering of the distinct keys of an array from zero, without sorting.

    O(n), whatever the number of all keys.

    >>> numbering = Numbering()
    >>> numbering.grow(10)
    >>> distinct, numbers = numbering.number(np.array([7, 3, 7]))
    >>> distinct[numbers].tolist()
    [7, 3, 7]
    """

    _numbers: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def grow(self, size: int) -> None:
        """Make room for more keys."""
        if size > len(self._numbers):
            self._numbers = np.empty(size, dtype=np.int64)

    def distinct(self, keys: IntArray) -> IntArray:
        """Return each key once."""
        order = np.arange(len(keys))
        self._numbers[keys] = order
        found: IntArray = keys[self._numbers[keys] == order]
        return found

    def number(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Return each key once, and for every key its position among these."""
        distinct = self.distinct(keys)
        return distinct, self.among(distinct, keys)

    def among(self, distinct: IntArray, keys: IntArray) -> IntArray:
        """Return the positions of some keys among others, which are given once each."""
        self._numbers[distinct] = np.arange(len(distinct))
        numbers: IntArray = self._numbers[keys]
        return numbers


@dataclass(frozen=True)
class Accumulator(Generic[Values, Aggregates]):
    """Folding of events into partials, and of partials into one."""

    folding: Folding[Values, Aggregates]
    numbering: Numbering

    def fold(self, keys: IntArray, times: IntArray, values: Values, known: int) -> Partial:
        """Return the partial of events whose keys are all below ``known``. O(n)."""
        at: At
        if len(keys) * _DENSE_EVENTS >= known:
            at, slots, size = slice(0, known), keys, known
        else:
            at, slots = self.numbering.number(keys)
            size = len(at)
        counts = np.bincount(slots, minlength=size)
        newest = np.full(size, NEVER)
        np.maximum.at(newest, slots, times)
        partial = Partial(at, counts, newest, self.folding.fold(slots, size, values))
        if isinstance(at, slice) and int(np.count_nonzero(counts)) * _DENSE_KEYS < known:
            return partial.listed()
        return partial

    def taken(self, keys: IntArray, values: Values, left: Left[Values] | None) -> Partial:
        """Return the partial that, merged with one that holds some events, removes them. O(n).

        ``left`` returns the remaining events of some keys.
        """
        at, slots = self.numbering.number(keys)
        counts: IntArray = -np.bincount(slots, minlength=len(at))
        newest = np.full(len(at), NEVER)
        if left is None:
            return Partial(at, counts, newest, self.folding.unfold(slots, len(at), values, None))
        keys_left, times, values_left = left(at)
        slots_left = self.numbering.among(at, keys_left)
        np.maximum.at(newest, slots_left, times)
        return Partial(
            at,
            counts,
            newest,
            self.folding.unfold(slots, len(at), values, (slots_left, values_left)),
        )

    def together(self, partials: Sequence[Partial]) -> Partial:
        """Return the merger of several partials. O(their sizes)."""
        if len(partials) == 1:
            return partials[0]
        at, places, size = self._places(partials)
        counts = np.zeros(size, dtype=np.int64)
        newest = np.full(size, NEVER)
        for place, partial in zip(places, partials, strict=True):
            add_to(counts, place, partial.counts)
            raise_to(newest, place, partial.newest)
        return Partial(
            at,
            counts,
            newest,
            self.folding.merge(places, [each.columns for each in partials], size),
        )

    def _places(self, partials: Sequence[Partial]) -> tuple[At, Sequence[At], int]:
        widths = [each.at.stop for each in partials if isinstance(each.at, slice)]
        listed = [each.at for each in partials if not isinstance(each.at, slice)]
        if widths:
            known = max([*widths, *(int(keys.max()) + 1 for keys in listed if len(keys))])
            return slice(0, known), [each.at for each in partials], known
        distinct, numbers = self.numbering.number(np.concatenate(listed))
        return (
            distinct,
            np.split(numbers, np.cumsum([len(keys) for keys in listed])[:-1]),
            len(distinct),
        )


def packed(partials: Iterable[tuple[Mapping[str, int], Partial]]) -> dict[str, dict[str, AnyArray]]:
    """Return partials, with some numbers each, as tables: the keys, and each kind of column."""
    tables: dict[str, dict[str, list[AnyArray]]] = {"keys": {}}
    for number, (beside, partial) in enumerate(partials):
        listed = partial.listed()
        keys = listed.keys()
        own: dict[str, AnyArray] = {"partial": np.full(len(keys), number), "key": keys}
        _append(
            tables["keys"],
            own | {name: np.full(len(keys), value) for name, value in beside.items()},
        )
        _append(tables["keys"], {"count": listed.counts, "newest": listed.newest})
        for bin, column in listed.columns.items():
            _append(tables.setdefault(str(bin), {}), {"partial": own["partial"], "value": column})
    return {
        name: {column: np.concatenate(parts) for column, parts in table.items()}
        for name, table in tables.items()
        if table
    }


def unpacked(tables: Mapping[str, Mapping[str, AnyArray]]) -> list[tuple[dict[str, int], Partial]]:
    """Return the input of :func:`packed`, all partials as lists of keys."""
    keys = tables.get("keys")
    if not keys:
        return []
    found = []
    numbers = np.unique(keys["partial"])
    rows = {name: _runs(table["partial"], numbers) for name, table in tables.items()}
    for at in range(len(numbers)):
        own = {name: column[rows["keys"][at]] for name, column in keys.items() if name != "partial"}
        columns: dict[int, AnyArray] = {
            int(name): table["value"][rows[name][at]]
            for name, table in tables.items()
            if name != "keys" and rows[name][at].stop > rows[name][at].start
        }
        partial = Partial(own.pop("key"), own.pop("count"), own.pop("newest"), columns)
        found.append(({name: int(column[0]) for name, column in own.items()}, partial))
    return found


def _append(table: dict[str, list[AnyArray]], columns: Mapping[str, AnyArray]) -> None:
    for name, column in columns.items():
        table.setdefault(name, []).append(column)


def _runs(column: AnyArray, numbers: AnyArray) -> list[slice]:
    """Return the range of each of some numbers in an ascending column."""
    starts, stops = (
        np.searchsorted(column, numbers, "left"),
        np.searchsorted(column, numbers, "right"),
    )
    return list(map(slice, starts.tolist(), stops.tolist()))
