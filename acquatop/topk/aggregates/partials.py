"""What a pane adds to its keys' aggregates, folded from the events once, so that these need not be kept.

Few keys are kept as a list, many as columns over all keys: ``at`` is the one or the other, and
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
"""What a kind of aggregate keeps of values, one row per key."""

BoolArray: TypeAlias = npt.NDArray[np.bool_]
V = TypeVar("V")
Left: TypeAlias = Callable[[IntArray], tuple[IntArray, IntArray, V]]
"""Says of some keys which events are left: their keys, times and values."""
Values = TypeVar("Values", contravariant=True)
Aggregates = TypeVar("Aggregates", covariant=True)

NEVER = -(2**63)
"""The newest time of what has no event."""

_DENSE_EVENTS = 2
_DENSE_KEYS = 4


@dataclass(frozen=True)
class Partial:
    """Keys, each once, or all below some number; how many events each has, the newest's time, and the values'."""

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
        """Return the same as a list of keys."""
        if not isinstance(self.at, slice):
            return self
        return self.only(self.keys(), self.keys())

    def only(self, at: IntArray, keys: IntArray) -> Partial:
        """Return what it has at some positions, which are those of the keys."""
        columns = {bin: column[at] for bin, column in self.columns.items()}
        return Partial(keys, self.counts[at], self.newest[at], columns)


def add_to(column: AnyArray, at: At, values: AnyArray) -> None:
    """Add values to a column, at places each of which is named once."""
    if isinstance(at, slice):
        # Unlike ``column[at] += values``, this does not write the column back onto itself.
        np.add(column[at], values, out=column[at])
    else:
        column[at] += values


def take_from(column: AnyArray, at: At, values: AnyArray) -> None:
    """Take values off a column, at places each of which is named once."""
    if isinstance(at, slice):
        np.subtract(column[at], values, out=column[at])
    else:
        column[at] -= values


def raise_to(column: AnyArray, at: At, values: AnyArray) -> None:
    """Put values where a column has smaller ones, at places each of which is named once."""
    if isinstance(at, slice):
        np.maximum(column[at], values, out=column[at])
    else:
        column[at] = np.maximum(column[at], values)


class Folding(Protocol[Values, Aggregates]):
    """One kind of aggregate: what it keeps of values, per pane and per key, and how a key's aggregate is read."""

    def fold(self, slots: IntArray, size: int, values: Values) -> Columns:
        """Return what is kept of values, the keys of which are numbered below ``size``."""

    def unfold(self, slots: IntArray, size: int, values: Values, left: tuple[IntArray, Values] | None) -> Columns:
        """Return what, merged with what was kept of these values and others, leaves what is kept of the others.

        ``left`` are the others, for those whose keys were cleared; None where the values withdrawn
        have equals in a partial that stays for longer.
        """

    def clear(self, columns: Columns, at: BoolArray) -> None:
        """Make room in a partial's columns for what is left of some keys, if it cannot be had by taking values off."""

    def merge(self, places: Sequence[At], columns: Sequence[Columns], size: int) -> Columns:
        """Return what is kept of several partials together, each one's keys at some places among ``size``."""

    def grow(self, size: int) -> None:
        """Make place for more keys."""

    def enter(self, last: int, partial: Partial) -> None:
        """Take a partial into the keys' aggregates, until after the window ``last``."""

    def leave(self, window: int, gone: Sequence[Partial]) -> None:
        """Take out what was in until some window before this one."""

    def exchange(self, last: int, before: Sequence[Partial], change: Partial, after: Partial) -> None:
        """Have one partial in the place of all that are in until after a window: their merger with a change."""

    def read(self, at: At) -> Aggregates:
        """Return the aggregates of some keys; of those without an event, anything."""


class Counted:
    """The kind that keeps nothing of values: they are counted anyway."""

    def fold(self, slots: IntArray, size: int, values: FloatArray) -> Columns:
        """Return nothing."""
        return {}

    def unfold(
        self, slots: IntArray, size: int, values: FloatArray, left: tuple[IntArray, FloatArray] | None
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

    def exchange(self, last: int, before: Sequence[Partial], change: Partial, after: Partial) -> None:
        """Do nothing."""

    def read(self, at: At) -> FloatArray:
        """Return nothing: what is counted is not kept here."""
        return np.empty(0)


@dataclass
class Numbering:
    """Numbers the distinct among keys from zero, without sorting. O(n), whatever the number of all keys.

    >>> numbering = Numbering()
    >>> numbering.grow(10)
    >>> distinct, numbers = numbering.number(np.array([7, 3, 7]))
    >>> distinct[numbers].tolist()
    [7, 3, 7]
    """

    _numbers: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def grow(self, size: int) -> None:
        """Make place for more keys."""
        if size > len(self._numbers):
            self._numbers = np.empty(size, dtype=np.int64)

    def distinct(self, keys: IntArray) -> IntArray:
        """Return each key once."""
        order = np.arange(len(keys))
        self._numbers[keys] = order
        found: IntArray = keys[self._numbers[keys] == order]
        return found

    def number(self, keys: IntArray) -> tuple[IntArray, IntArray]:
        """Return each key once, and for every key where it stands among these."""
        distinct = self.distinct(keys)
        return distinct, self.among(distinct, keys)

    def among(self, distinct: IntArray, keys: IntArray) -> IntArray:
        """Return where each of some keys stands among others, which are given once each."""
        self._numbers[distinct] = np.arange(len(distinct))
        numbers: IntArray = self._numbers[keys]
        return numbers


@dataclass(frozen=True)
class Folder(Generic[Values, Aggregates]):
    """Folds events into partials, and partials into one."""

    folding: Folding[Values, Aggregates]
    numbering: Numbering

    def fold(self, keys: IntArray, times: IntArray, values: Values, known: int) -> Partial:
        """Return what events add to their keys, all of which are below ``known``. O(n)."""
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
        """Return what, together with a partial that holds some events, leaves it without them. O(n).

        ``left`` says which events of some keys are left.
        """
        at, slots = self.numbering.number(keys)
        counts: IntArray = -np.bincount(slots, minlength=len(at))
        newest = np.full(len(at), NEVER)
        if left is None:
            return Partial(at, counts, newest, self.folding.unfold(slots, len(at), values, None))
        keys_left, times, values_left = left(at)
        slots_left = self.numbering.among(at, keys_left)
        np.maximum.at(newest, slots_left, times)
        return Partial(at, counts, newest, self.folding.unfold(slots, len(at), values, (slots_left, values_left)))

    def together(self, partials: Sequence[Partial]) -> Partial:
        """Return what several add together. O(their sizes)."""
        if len(partials) == 1:
            return partials[0]
        at, places, size = self._places(partials)
        counts = np.zeros(size, dtype=np.int64)
        newest = np.full(size, NEVER)
        for place, partial in zip(places, partials, strict=True):
            add_to(counts, place, partial.counts)
            raise_to(newest, place, partial.newest)
        return Partial(at, counts, newest, self.folding.merge(places, [each.columns for each in partials], size))

    def _places(self, partials: Sequence[Partial]) -> tuple[At, Sequence[At], int]:
        widths = [each.at.stop for each in partials if isinstance(each.at, slice)]
        listed = [each.at for each in partials if not isinstance(each.at, slice)]
        if widths:
            known = max([*widths, *(int(keys.max()) + 1 for keys in listed if len(keys))])
            return slice(0, known), [each.at for each in partials], known
        distinct, numbers = self.numbering.number(np.concatenate(listed))
        return distinct, np.split(numbers, np.cumsum([len(keys) for keys in listed])[:-1]), len(distinct)


def packed(partials: Iterable[tuple[Mapping[str, int], Partial]]) -> dict[str, dict[str, AnyArray]]:
    """Return partials, and some numbers beside each, as tables: one of the keys, and one for each kind of column."""
    tables: dict[str, dict[str, list[AnyArray]]] = {"keys": {}}
    for number, (beside, partial) in enumerate(partials):
        listed = partial.listed()
        keys = listed.keys()
        own: dict[str, AnyArray] = {"partial": np.full(len(keys), number), "key": keys}
        _append(tables["keys"], own | {name: np.full(len(keys), value) for name, value in beside.items()})
        _append(tables["keys"], {"count": listed.counts, "newest": listed.newest})
        for bin, column in listed.columns.items():
            _append(tables.setdefault(str(bin), {}), {"partial": own["partial"], "value": column})
    return {
        name: {column: np.concatenate(parts) for column, parts in table.items()}
        for name, table in tables.items()
        if table
    }


def unpacked(tables: Mapping[str, Mapping[str, AnyArray]]) -> list[tuple[dict[str, int], Partial]]:
    """Return what :func:`packed` was given, all partials as lists of keys."""
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
    """Return where each of some numbers stands in a column that ascends."""
    starts, stops = np.searchsorted(column, numbers, "left"), np.searchsorted(column, numbers, "right")
    return list(map(slice, starts.tolist(), stops.tolist()))
