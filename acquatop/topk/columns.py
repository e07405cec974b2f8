"""Vectorised lookup of values in columns. Integers that lie close together need no sorting."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from acquatop.topk.contract import AnyArray, IntArray

_SPREAD = 64
"""Largest range of integers, per compared value, for which a lookup table is built."""
_TABLE_ROOM = 8
_LEAST = -(2**63)


def among(column: AnyArray, wanted: AnyArray) -> npt.NDArray[np.bool_]:
    """Return a mask of the column's values that are among others.

    O(n), or O(n log n) for integers that lie far apart.

    >>> among(np.array([3, 9, 4]), np.array([4, 3])).tolist()
    [True, False, True]
    """
    if column.dtype.kind not in "iu":
        values = set(wanted.tolist())
        return np.fromiter(
            (each in values for each in column.tolist()), dtype=bool, count=len(column)
        )
    if not len(wanted) or not len(column):
        return np.zeros(len(column), dtype=bool)
    # One place at either end is for all values outside of the range.
    before, highest = int(wanted.min()) - 1, int(wanted.max())
    has_table = highest - before < _SPREAD * (len(column) + len(wanted)) and before >= _LEAST
    if has_table and column.dtype.kind == "i":
        is_wanted = np.zeros(highest - before + 2, dtype=bool)
        is_wanted[wanted - before] = True
        return is_wanted.take(column - np.int64(before), mode="clip")
    if len(column) > len(wanted):
        return np.isin(column, wanted)
    ordered = np.sort(wanted)
    places = ordered.searchsorted(column)
    return np.asarray(ordered.take(places, mode="clip") == column)


class ValueIndex:
    """Index of the positions of a column's values. A lookup reads only the wanted values' entries.

    The first lookup builds the index in O(n); the index takes some 100 bytes per different value.
    Integer columns have no index: they are compared as a whole at each lookup, which is cheaper.

    >>> places = ValueIndex(np.array(["a", "b", "a"], dtype=object))
    >>> places.of(np.array(["a", "c"], dtype=object)).tolist()
    [0, 2]
    """

    def __init__(self, column: AnyArray) -> None:
        self._column = column

    @cached_property
    def _last(self) -> tuple[dict[Any, int], list[int]]:
        """Map each value to its last position, and each position to the value's previous one.

        The previous position is -1 if there is none.
        """
        last: dict[Any, int] = {}
        before = []
        for at, value in enumerate(self._column.tolist()):
            before.append(last.get(value, -1))
            last[value] = at
        return last, before

    def of(self, wanted: AnyArray) -> IntArray:
        """Return the positions of some values, in order."""
        if self._column.dtype.kind in "iu" or len(wanted) >= len(self._column):
            return np.flatnonzero(among(self._column, wanted))
        last, before = self._last
        found = []
        for value in set(wanted.tolist()):
            at = last.get(value, -1)
            while at >= 0:
                found.append(at)
                at = before[at]
        return np.sort(np.array(found, dtype=np.int64))


def newest_of(identities: AnyArray, times: IntArray) -> IntArray:
    """Return the positions of the newest row of each identity, in order.

    Of rows with the same time, the last one counts.

    >>> newest_of(np.array([7, 8, 7, 7]), np.array([5, 1, 9, 2])).tolist()
    [1, 2]
    """
    if not len(identities):
        return np.empty(0, dtype=np.int64)
    (codes,) = codes_of([identities])
    return newest_of_codes(codes, times, 1 + int(codes.max()))


def newest_of_codes(codes: IntArray, times: IntArray, count: int) -> IntArray:
    """Return the positions of the newest row of each code of a pane, in the pane's order."""
    order = np.arange(len(times))
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable")
    # If a code occurs again, the later assignment wins.
    newest = np.full(count, -1)
    newest[codes[order]] = order
    return np.flatnonzero(newest[codes] == np.arange(len(codes)))


def codes_of(columns: Sequence[AnyArray]) -> list[IntArray]:
    """Return small integers from 0 that stand for identities.

    Equal identities have equal integers in all columns.
    """
    if columns[0].dtype.kind not in "iu":
        numbers: dict[Any, int] = {}
        return [
            np.fromiter(
                (numbers.setdefault(each, len(numbers)) for each in column.tolist()),
                np.int64,
                len(column),
            )
            for column in columns
        ]
    low, high = min(int(each.min()) for each in columns), max(int(each.max()) for each in columns)
    if high - low < _TABLE_ROOM * sum(map(len, columns)):
        return [(column - low).astype(np.int64) for column in columns]
    codes = np.unique(np.concatenate(columns), return_inverse=True)[1]
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1])
