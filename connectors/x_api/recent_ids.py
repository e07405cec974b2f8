"""Ids of recent posts, to recognise repeated ones."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.uint64]
MOST = 200_000
"""Number of ids remembered.

X repeats at most the last five minutes, so a repetition can be missed only above 666 posts a
second.
"""
_FRESH = 4096
"""Number of new ids at which they are merged with the older ones."""


class RecentIds:
    """The greatest ids received; X's ids grow with time.

    Keeps at least ``most`` ids, and about twice as many at most, in 8 bytes each. An id below all
    of them counts as new: a duplicate is better than a loss. A batch costs a binary search for each
    of its ids.

    >>> recent = RecentIds()
    >>> recent.add(np.array([3, 5, 3], np.uint64)), recent.add(np.array([5, 7], np.uint64))
    (array([ True,  True, False]), array([False,  True]))
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._settled: Ids = np.empty(0, np.uint64)
        self._fresh: Ids = np.empty(0, np.uint64)

    def __len__(self) -> int:
        return len(self._settled) + len(self._fresh)

    def add(self, ids: Ids) -> npt.NDArray[np.bool_]:
        """Add ids; return True for each new one, and only for its first occurrence in the batch."""
        is_new = np.zeros(len(ids), np.bool_)
        distinct, first = np.unique(ids, return_index=True)
        unknown = ~(_has(self._settled, distinct) | _has(self._fresh, distinct))
        is_new[first[unknown]] = True
        self._fresh = _merged(self._fresh, distinct[unknown])
        if len(self._fresh) >= _FRESH:
            self._settle()
        return is_new

    def ids(self) -> Ids:
        """Return the greatest ids received, in order."""
        self._settle()
        return self._settled[-self._most :]

    def _settle(self) -> None:
        self._settled = _merged(self._settled, self._fresh)
        self._fresh = np.empty(0, np.uint64)
        if len(self._settled) > 2 * self._most:
            self._settled = self._settled[-self._most :].copy()


def _has(ordered: Ids, ids: Ids) -> npt.NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(ids), np.bool_)
    places = np.minimum(np.searchsorted(ordered, ids), len(ordered) - 1)
    return np.asarray(ordered[places] == ids)


def _merged(ordered: Ids, more: Ids) -> Ids:
    """Return two disjoint ordered arrays of ids as one."""
    return np.insert(ordered, np.searchsorted(ordered, more), more) if len(more) else ordered
