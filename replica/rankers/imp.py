"""Expected impact: refresh first what is likeliest to change the answer, and changes it most."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, FloatArray, IntArray

_CELLS = 1 << 16
_FEWEST, _MOST = 16, 512
"""How many merits are drawn for each candidate: as many as make so many cells, within these bounds."""

_NEXT_TO_NOTHING = 1e-9
"""The impact of what cannot be seen to have any: between such the likelier to have changed is first."""


class ExpectedImpact:
    """All candidates, in the order of what a refresh of each is expected to do to this answer and the next.

    A place r of the k is worth ``worth_of(r)``: its share of nDCG's gain, and of precision. A refresh that moves a
    candidate from its place to another is worth the difference, and which place that is follows from the merit that it
    may have by now, among those that the others have in the replica. The impact is the mean of that over merits drawn,
    times the chance that it has changed at all; and half as much again, or up to twice, if the candidate will be
    in the next evaluation, too, and its value lasts as long. Where nothing can be said of merits, what is in the answer
    is taken to leave it if it has changed. O(n log n), and O(draws · n log k).
    """

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        places = _places(candidates)
        impact = candidates.chances * self.shifts(candidates, places)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lasts = np.nan_to_num(np.exp(-candidates.slide / np.maximum(candidates.intervals, 0.0)), nan=0.0)
        priority = impact * (1 + np.where(candidates.remaining > 0, lasts, 0.0)) + _NEXT_TO_NOTHING * candidates.chances
        return np.lexsort((places, candidates.fetched_at, -priority))

    def shifts(self, candidates: Candidates, places: IntArray) -> FloatArray:
        """Return what it is worth on average that each is moved to where a changed value puts it."""
        count, k = len(candidates), candidates.k
        if not count:
            return np.empty(0)
        worth = worth_of(k)
        own = np.minimum(places, k)
        draws = int(np.clip(_CELLS // count, _FEWEST, _MOST))
        drawn = candidates.outlook(np.arange(count), draws)
        merits = np.where(np.isnan(candidates.merits), -np.inf, candidates.merits)
        bars = np.sort(merits)[::-1][: k + 1][::-1]
        above = len(bars) - np.searchsorted(bars, drawn, side="right")
        above -= (own < len(bars)) & (merits > drawn)
        moved = np.abs(worth[np.minimum(above, k)] - worth[own])
        is_known = ~np.isnan(drawn)
        known = is_known.sum(axis=0)
        mean = np.where(is_known, moved, 0.0).sum(axis=0) / np.maximum(known, 1)
        return np.where(known > 0, mean, worth[own])


def worth_of(k: int) -> FloatArray:
    """Return what each place of an answer of k is worth, and 0 for all behind: shares of nDCG and of precision, added.

    >>> worth_of(2).round(2).tolist()
    [1.33, 0.67, 0.0]
    """
    places = np.arange(k)
    gains = (2.0**-places - 2.0**-k) / np.log2(places + 2)
    return np.append(gains / gains.sum() + 1 / k, 0.0)


def _places(candidates: Candidates) -> IntArray:
    """Return each candidate's place by its merit; those without one come last, as they are given."""
    merits = np.where(np.isnan(candidates.merits), -np.inf, candidates.merits)
    places = np.empty(len(merits), dtype=np.int64)
    places[np.argsort(-merits, kind="stable")] = np.arange(len(merits))
    return places
