"""The one total order over columns: sort by it, or select the best without sorting all."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, IntArray


class Identities(Protocol):
    """Column of identities. Only those that decide a tie are made or read."""

    def __getitem__(self, at: IntArray, /) -> AnyArray:
        """Return the identities at some positions."""


class _Some:
    """Identities at some positions, of which only those asked for are made."""

    def __init__(self, identities: Identities, at: IntArray) -> None:
        self._identities = identities
        self._at = at

    def __getitem__(self, chosen: IntArray, /) -> AnyArray:
        return self._identities[self._at[chosen]]


def ranking(merits: FloatArray, times: IntArray, identities: Identities) -> IntArray:
    """Return the positions of all rows, best first: greater merit, newer, smaller identity.

    Identities are compared only if merit and time are equal. O(n log n).

    >>> ranking(
    ...     np.array([1.0, 2.0, 2.0, 2.0]), np.array([9, 3, 4, 4]), np.array(["a", "b", "d", "c"])
    ... ).tolist()
    [3, 2, 1, 0]
    """
    order = np.argsort(-merits)
    in_merits = merits[order]
    tied = in_merits[1:] == in_merits[:-1]
    if not tied.any():
        return order
    order = np.lexsort((-times, -merits))
    in_merits, in_times = merits[order], times[order]
    tied = (in_merits[1:] == in_merits[:-1]) & (in_times[1:] == in_times[:-1])
    if tied.any():
        edges = np.flatnonzero(np.diff(tied, prepend=False, append=False))
        for start, stop in zip(edges[::2].tolist(), (edges[1::2] + 1).tolist(), strict=True):
            run = order[start:stop]
            order[start:stop] = run[np.argsort(identities[run], kind="stable")]
    return order


def best(count: int, merits: FloatArray, times: IntArray, identities: Identities) -> IntArray:
    """Return the positions of the best ``count`` rows, best first.

    O(n + count log count), unless many rows tie with the last in merit and time: these are sorted
    too.

    >>> best(2, np.array([1.0, 3.0, 2.0, 3.0]), np.arange(4), np.arange(4)).tolist()
    [3, 1]
    """
    if len(merits) <= 4 * count:
        return ranking(merits, times, identities)[:count]
    if count == 0:
        return np.empty(0, dtype=np.int64)
    bar = np.partition(merits, len(merits) - count)[len(merits) - count]
    at_least = np.flatnonzero(merits >= bar)
    if len(at_least) > 2 * count:
        # Most are tied at the bar. Of these, only the newest can be among the best.
        tied = at_least[merits[at_least] == bar]
        wanted = count - (len(at_least) - len(tied))
        newest = np.partition(times[tied], len(tied) - wanted)[len(tied) - wanted]
        at_least = at_least[(merits[at_least] > bar) | (times[at_least] >= newest)]
    some = _Some(identities, at_least)
    return at_least[ranking(merits[at_least], times[at_least], some)[:count]]
