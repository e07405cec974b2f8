"""Periodic moments: the openings or closes of several queries' windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from acquatop.topk.contract import IntArray

BEFORE_ALL = -(2**62)
"""Moment before all others, with room for additions to moments."""


class PeriodicTimes(NamedTuple):
    """All moments that are whole steps away from ``at``, without those before ``since``."""

    at: int
    step: int
    since: int = BEFORE_ALL

    def from_(self, time: int) -> int:
        """Return the first moment at a time or after it."""
        time = max(time, self.since)
        return time + (self.at - time) % self.step

    def between(self, after: int, until: int) -> IntArray:
        """Return the moments after ``after`` and up to ``until``, in order."""
        return np.arange(self.from_(after + 1), until + 1, self.step)


def between(several: Sequence[PeriodicTimes], after: int, until: int) -> IntArray:
    """Return the moments of several series after ``after`` and up to ``until``, in order.

    >>> between([PeriodicTimes(0, 4), PeriodicTimes(1, 5, since=6)], 3, 12).tolist()
    [4, 6, 8, 11, 12]
    """
    moments = [each.between(after, until) for each in several]
    return np.unique(np.concatenate(moments)) if moments else np.empty(0, np.int64)


def are_near(several: Sequence[PeriodicTimes], times: IntArray) -> bool:
    """Return true if moments are no denser, on average per series, than some ordered times."""
    return sum((int(times[-1]) - int(times[0])) // each.step for each in several) <= len(
        several
    ) * len(times)


def first_from(several: Sequence[PeriodicTimes], times: IntArray) -> IntArray:
    """Return the first moment of any of several series at each of some times or after it.

    Times are in order. Without any series the result is the same for all. O((m + n) log m) for m
    moments between the times, or O(n) for each series if there are fewer times than moments.

    >>> several = [PeriodicTimes(0, 4), PeriodicTimes(1, 5, since=6)]
    >>> first_from(several, np.array([1, 4, 5, 10**12])).tolist()
    [4, 4, 6, 1000000000000]
    """
    if not len(times) or not several:
        return np.zeros(len(times), np.int64)
    if are_near(several, times):
        latest = min(each.from_(int(times[-1])) for each in several)
        moments = between(several, int(times[0]) - 1, latest)
        return moments[np.searchsorted(moments, times, side="left")]
    found = np.full(len(times), -BEFORE_ALL)
    for at, step, since in several:
        moments = np.maximum(times, since)
        np.minimum(found, moments + (at - moments) % step, out=found)
    return found


def last_before(several: Sequence[PeriodicTimes], times: IntArray) -> IntArray:
    """Return the last moment of any of several series before each of some times.

    ``BEFORE_ALL`` if there is none. O(n) for each series.

    >>> several = [PeriodicTimes(0, 4), PeriodicTimes(1, 5, since=6)]
    >>> last_before(several, np.array([1, 4, 5, 7])).tolist()
    [0, 0, 4, 6]
    """
    found = np.full(len(times), BEFORE_ALL)
    for at, step, since in several:
        moments = times - 1 - (times - 1 - at) % step
        np.maximum(found, np.where(moments >= since, moments, BEFORE_ALL), out=found)
    return found
