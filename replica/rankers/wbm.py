"""Window based maintenance: refresh what is past its best, and of that what spares the most later refreshes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from replica.rankers.contract import Candidates, FloatArray, IntArray
from replica.rankers.ordering import ascending

_MOST = 2**15 - 3
"""Scores are whole, and more evaluations than that are as good as for ever; small numbers are sorted in O(n)."""


class WindowBasedMaintenance:
    """All candidates: what was never fetched, what may be stale by score, the rest by when it will be. O(n log n).

    A value is best before a change interval has passed since it was fetched. From then on it may be stale, and its
    score is min(L, V): in how many further evaluations it will be, and for how many a refresh would last, which is
    until its next change is due. Of two with one score the one fetched earlier is first. (The paper's section 3.2; of
    what is past its best for more than an interval, the next change is due as if all had come at that pace.)
    """

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        # What was never fetched has no such time: minus infinity and perhaps infinity.
        with np.errstate(invalid="ignore"):
            best_before = candidates.fetched_at + np.maximum(candidates.intervals, 0.0)
        was_fetched = candidates.fetched_at > -np.inf
        is_stale = was_fetched & (best_before <= candidates.now)
        groups = np.where(was_fetched, np.int16(_MOST + 2), np.int16(0))
        groups[is_stale] = 1 + _MOST - self.scores(candidates)[is_stale]
        order = ascending(np.where(is_stale | ~was_fetched, candidates.fetched_at, best_before))
        return order[np.argsort(groups[order], kind="stable")]

    def scores(self, candidates: Candidates) -> IntArray:
        """Return min(L, V) of each candidate, 0 or more; what it says of those never fetched means nothing."""
        intervals = np.maximum(candidates.intervals, 0.0)
        with np.errstate(all="ignore"):
            overdue = candidates.now - (candidates.fetched_at + intervals)
            overdue -= np.floor(overdue / intervals) * intervals
            lasts = np.ceil((intervals - overdue) / np.float64(candidates.slide))
        lasts = np.nan_to_num(lasts, nan=0.0, posinf=_MOST)
        return np.clip(np.minimum(candidates.remaining, lasts), 0, _MOST).astype(np.int64)


def told_the_truth(intervals: Callable[[IntArray], FloatArray]) -> type[WindowBasedMaintenance]:
    """Return a ranker that knows the change intervals of rows rather than estimating them, for experiments."""

    class WindowBasedMaintenanceToldTheTruth(WindowBasedMaintenance):
        def __call__(self, candidates: Candidates) -> IntArray:
            return super().__call__(replace(candidates, intervals=intervals(candidates.rows)))

    return WindowBasedMaintenanceToldTheTruth
