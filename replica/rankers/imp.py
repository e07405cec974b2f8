"""Expected impact: refresh first what is likeliest to change the answer, and changes it most."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, FloatArray, IntArray

_CELLS = 1 << 16
_FEWEST, _MOST = 16, 64
"""How many worlds are drawn: as many as make so many cells, within these bounds."""

_NEXT_TO_NOTHING = 1e-9
"""The impact of what cannot be seen to have any: between such the likelier to have changed is first."""


class ExpectedImpact:
    """All candidates, in the order of what a refresh of each is expected to do to this answer and the next.

    A place of the k is worth what ``worth_of`` says: its share of nDCG's gain, and of precision. Worlds are drawn, in
    which each candidate has another merit with the chance that it has changed. A refresh that finds a candidate changed
    moves it from the place that the replica's merit has among those which the others have in that world to the place of
    its own, and is worth the difference. The impact is the mean of that, times the chance that it has changed; and up
    to twice as much if the candidate will be in the next evaluation, too, and its value lasts so long. Where nothing
    can be said of merits, what is in the answer is taken to leave it if it has changed.

    O(n log n), and O(worlds · n log k).
    """

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        places = _places(_known(candidates.merits))
        impact = candidates.chances * self.shifts(candidates, places)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lasts = np.nan_to_num(np.exp(-candidates.slide / np.maximum(candidates.intervals, 0.0)), nan=0.0)
        priority = impact * (1 + np.where(candidates.remaining > 0, lasts, 0.0)) + _NEXT_TO_NOTHING * candidates.chances
        return np.lexsort((places, candidates.fetched_at, -priority))

    def shifts(self, candidates: Candidates, places: IntArray) -> FloatArray:
        """Return what it is worth on average that a refresh moves each to where it belongs, if it has changed."""
        count, k = len(candidates), candidates.k
        if not count:
            return np.empty(0)
        worth, merits = worth_of(k), _known(candidates.merits)
        drawn = candidates.outlook(np.arange(count), int(np.clip(_CELLS // count, _FEWEST, _MOST)))
        says = ~np.isnan(drawn)
        changed = says & (candidates.random.random(drawn.shape) < candidates.chances)
        moved = np.zeros(drawn.shape)
        for at, true in enumerate(np.where(changed, drawn, merits)):
            best = np.sort(np.partition(true, count - k - 1)[count - k - 1 :] if count > k + 1 else true)
            moved[at] = worth[_places_among(best, true, drawn[at], k)] - worth[_places_among(best, true, merits, k)]
        known = says.sum(axis=0)
        mean = np.where(says, np.abs(moved), 0.0).sum(axis=0) / np.maximum(known, 1)
        return np.where(known > 0, mean, worth[np.minimum(places, k)])


def worth_of(k: int) -> FloatArray:
    """Return what each place of an answer of k is worth, and 0 for all behind: shares of nDCG and of precision, added.

    >>> worth_of(2).round(2).tolist()
    [1.33, 0.67, 0.0]
    """
    places = np.arange(k)
    gains = (2.0**-places - 2.0**-k) / np.log2(places + 2)
    return np.append(gains / gains.sum() + 1 / k, 0.0)


def _places_among(best: FloatArray, true: FloatArray, merits: FloatArray, k: int) -> IntArray:
    """Return the place that each would have with some merit among what the others have, k at most.

    ``best`` are the least to the greatest of the k + 1 best that all have, ``true`` is what each has.
    """
    above = len(best) - np.searchsorted(best, merits, side="right")
    places: IntArray = np.clip(above - ((true >= best[0]) & (true > merits)), 0, k)
    return places


def _known(merits: FloatArray) -> FloatArray:
    return np.where(np.isnan(merits), -np.inf, merits)


def _places(merits: FloatArray) -> IntArray:
    """Return each candidate's place by its merit, of equals the first first."""
    places = np.empty(len(merits), dtype=np.int64)
    places[np.argsort(-merits, kind="stable")] = np.arange(len(merits))
    return places
