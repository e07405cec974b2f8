"""Temporal table: rows that are valid for a key from a time on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

IntArray = npt.NDArray[np.int64]


class Timeline:
    """Rows by key and time, as columns; a key's newest rows that are not in the future are valid.

    Rows of a key with equal time are valid together, in their order. Besides the keys' text it
    takes 16 bytes per row and 8 per key. Building it from n rows takes O(n log n), looking up m
    keys O(m log n), listing all O(n).

    >>> timeline = Timeline(pa.array(["b", "a", "b"]), np.array([10, 10, 20]))
    >>> [timeline.holding(["a", "b", "c"], now).tolist() for now in (9, 10, 25)]
    [[], [1, 0], [1, 2]]
    >>> [page.tolist() for page in timeline.pages(25, size=1)]
    [[1], [2]]
    """

    def __init__(self, keys: pa.Array, times: IntArray) -> None:
        encoded = keys.cast(pa.large_string()).dictionary_encode()
        texts = encoded.dictionary
        by_text = pc.array_sort_indices(texts).to_numpy()
        place = np.empty(len(texts), dtype=np.int64)
        place[by_text] = np.arange(len(texts))
        codes = place[encoded.indices.to_numpy()]
        self._rows = np.lexsort((times, codes))
        self._times = times[self._rows]
        self._starts = np.searchsorted(codes[self._rows], np.arange(len(texts) + 1))
        self._keys = texts.take(pa.array(by_text))

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._keys)

    def holding(self, keys: Sequence[str], now: int) -> IntArray:
        """Return the numbers of the rows valid at a time for some keys; none for unknown keys."""
        found = [self._range(code, now) for key in keys if (code := self._code(key)) >= 0]
        return (
            np.concatenate([self._rows[each] for each in found]) if found else np.empty(0, np.int64)
        )

    def pages(self, now: int, size: int) -> Iterator[IntArray]:
        """Yield the rows valid at a time for all keys, in key order, ``size`` keys per page."""
        for first in range(0, len(self), size):
            starts = self._starts[first : first + size + 1]
            yield self._rows[starts[0] : starts[-1]][
                _hold(self._times[starts[0] : starts[-1]], starts - starts[0], now)
            ]

    def _code(self, key: str) -> int:
        """Return a key's number, -1 if there is none."""
        low, high = 0, len(self._keys)
        while low < high:
            middle = (low + high) // 2
            if self._keys[middle].as_py() < key:
                low = middle + 1
            else:
                high = middle
        return low if low < len(self._keys) and self._keys[low].as_py() == key else -1

    def _range(self, code: int, now: int) -> slice:
        start, end = self._starts[code : code + 2]
        times = self._times[start:end]
        last = int(np.searchsorted(times, now, side="right"))
        first = int(np.searchsorted(times, times[last - 1])) if last else 0
        return slice(int(start) + first, int(start) + last)


def _hold(times: IntArray, starts: IntArray, now: int) -> npt.NDArray[np.bool_]:
    """Return True for valid rows; ``starts`` are each key's first row, and the last one's end."""
    has_come = times <= now
    come = np.concatenate([[0], np.cumsum(has_come)])
    last = starts[:-1] + come[starts[1:]] - come[starts[:-1]] - 1
    # A key whose rows are all in the future has no last; its rows are excluded by time anyway.
    newest = times[np.maximum(last, 0)]
    holds: npt.NDArray[np.bool_] = has_come & (times == np.repeat(newest, np.diff(starts)))
    return holds
