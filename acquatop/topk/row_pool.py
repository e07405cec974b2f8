"""Pool of rows with fixed slots. Their indexes can be sorted and merged without moving them."""

from __future__ import annotations

import numpy as np

from acquatop.topk.contract import AnyArray, IntArray, Rows


class RowPool:
    """Rows at fixed slots. Appending and taking cost O(rows); growing is amortised."""

    def __init__(self) -> None:
        self._capacity = 0
        self._used = 0
        self._columns: list[AnyArray] = []
        self._parts = 0

    @property
    def used(self) -> int:
        """Number of slots that hold a row, needed or not."""
        return self._used

    @property
    def nbytes(self) -> int:
        """Bytes of the columns."""
        return sum(column.nbytes for column in self._columns)

    def append(self, rows: Rows) -> int:
        """Put rows into consecutive slots and return the first."""
        start, stop = self._used, self._used + len(rows)
        columns = columns_of(rows)
        if not self._columns:
            self._parts = len(rows.parts)
            self._columns = [column[:0].copy() for column in columns]
        self._widen(columns)
        if stop > self._capacity:
            self._capacity = stop + stop // 8
            self._columns = [_grown(column, start, self._capacity) for column in self._columns]
        for mine, column in zip(self._columns, columns, strict=True):
            mine[start:stop] = column
        self._used = stop
        return start

    def take(self, slots: IntArray) -> Rows:
        """Return the rows at some slots."""
        times, identities, keys, *others = (column[slots] for column in self._columns)
        return Rows(
            times, identities, keys, tuple(others[: self._parts]), tuple(others[self._parts :])
        )

    def identities(self, slots: IntArray) -> AnyArray:
        """Return the identities of the rows at some slots."""
        return self._columns[1][slots]

    def keys(self, slots: IntArray) -> AnyArray:
        """Return the keys of the rows at some slots."""
        return self._columns[2][slots]

    def carried(self, number: int, slots: IntArray) -> AnyArray:
        """Return one of the carried columns of the rows at some slots."""
        if not len(slots):
            return np.empty(0, dtype=object)
        return self._columns[3 + self._parts + number][slots]

    def keep(self, slots: IntArray) -> None:
        """Move the rows at some slots to the first slots, in this order, and drop all others."""
        for column in self._columns:
            column[: len(slots)] = column[slots]
            if column.dtype == object:
                column[len(slots) :] = None
        self._used = len(slots)

    def _widen(self, columns: list[AnyArray]) -> None:
        """Widen columns whose type is too narrow for new rows, such as longer text."""
        for at, column in enumerate(columns):
            mine = self._columns[at]
            if mine.dtype != column.dtype:
                self._columns[at] = mine.astype(np.promote_types(mine.dtype, column.dtype))


def columns_of(rows: Rows) -> list[AnyArray]:
    """Return all columns of rows."""
    return [rows.times, rows.identities, rows.keys, *rows.parts, *rows.carried]


def _grown(column: AnyArray, used: int, capacity: int) -> AnyArray:
    grown = np.empty(capacity, column.dtype)
    grown[:used] = column[:used]
    return grown
