"""Window based maintenance: refresh possibly stale values first, those that save most refreshes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from replica.rankers.contract import Candidates, FloatArray, IntArray
from replica.rankers.ordering import ascending

_MOST = 2**15 - 3
"""Upper bound of scores: more evaluations than this count as for ever; int16 sorts in O(n)."""


class WindowBasedMaintenance:
    """All candidates: never fetched, then possibly stale by score, then the others. O(n log n).

    The others come in the order in which they will be possibly stale. A value is best before one
    change interval has passed since it was fetched. From then on it may be stale, and its score is
    min(L, V): L is the number of further evaluations it will be in, V the number for which a
    refresh would last, which is until its next change is due. Of two with equal score the one
    fetched earlier comes first. (The paper's section 3.2. If a value is overdue by more than one
    interval, its next change is due as if all changes had come at that interval.)
    """

    is_deterministic = True

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        # A value never fetched has no such time: minus infinity and perhaps infinity.
        with np.errstate(invalid="ignore"):
            best_before = candidates.fetched_at + np.maximum(candidates.intervals, 0.0)
        was_fetched = candidates.fetched_at > -np.inf
        is_stale = was_fetched & (best_before <= candidates.now)
        groups = np.where(was_fetched, np.int16(_MOST + 2), np.int16(0))
        groups[is_stale] = 1 + _MOST - self.scores(candidates)[is_stale]
        order = ascending(np.where(is_stale | ~was_fetched, candidates.fetched_at, best_before))
        return order[np.argsort(groups[order], kind="stable")]

    def scores(self, candidates: Candidates) -> IntArray:
        """Return min(L, V) of each candidate, 0 or more; undefined for those never fetched."""
        intervals = np.maximum(candidates.intervals, 0.0)
        with np.errstate(all="ignore"):
            overdue = candidates.now - (candidates.fetched_at + intervals)
            overdue -= np.floor(overdue / intervals) * intervals
            lasts = np.ceil((intervals - overdue) / np.float64(candidates.slide))
        lasts = np.nan_to_num(lasts, nan=0.0, posinf=_MOST)
        return np.clip(np.minimum(candidates.remaining, lasts), 0, _MOST).astype(np.int64)


def known_intervals(intervals: Callable[[IntArray], FloatArray]) -> type[WindowBasedMaintenance]:
    """Return a ranker that knows the true change intervals, for experiments."""

    class KnownIntervals(WindowBasedMaintenance):
        def __call__(self, candidates: Candidates) -> IntArray:
            return super().__call__(replace(candidates, intervals=intervals(candidates.rows)))

    return KnownIntervals
