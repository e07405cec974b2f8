"""Expected impact: refresh first what is likeliest to change the answer for the better, and changes it most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from replica.rankers.contract import Candidates, FloatArray, IntArray

BoolArray = npt.NDArray[np.bool_]

_CELLS = 1 << 14
_FEWEST, _MOST = 16, 256
"""How many worlds are drawn: as many as make so many cells, within these bounds."""

_FEW_PLACES = 16
"""So many places are compared with faster than searched among."""

_MEMBERSHIP = 2.0
"""How much precision counts beside nDCG."""

_TURNS = 32
"""After so many it no longer matters what a refresh would be worth alone."""

_FURTHEST = 1 << 10
"""An answer of more places, and of more than candidates, is weighed as one of so many: what is behind gains nothing."""

_NEXT_TO_NOTHING = 1e-9
"""The impact of what cannot be seen to have any: between such the likelier to have changed is first."""


class ExpectedImpact:
    """All candidates, in the order of what a refresh of each is expected to do for this answer and the next.

    Worlds are drawn, in which each candidate has another merit with the chance that it has changed. What a refresh is
    worth depends on which others are made. Two things are reckoned: what it is worth as the only one (``gains``), and
    when all others are right (``shifts``). The first in the order may be the only one, so it is chosen by what it is
    worth alone; the further down, the more does the other count. Both are up to twice as much for a candidate that
    will be in the next evaluation, too, if its value lasts so long. Where nothing can be said of merits, what is in the
    answer is taken to leave it if it has changed. Nothing is worth anything to an answer that has no places: then the
    likelier to have changed is first, of equals the one fetched longest ago.

    O(n log n), and O(worlds · n log k).
    """

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        places = _places(_known(candidates.merits))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lasts = np.nan_to_num(np.exp(-candidates.slide / np.maximum(candidates.intervals, 0.0)), nan=0.0)
        serves = 1 + np.where(candidates.remaining > 0, lasts, 0.0)
        alone, together = (serves * each for each in self.impacts(candidates, places))
        rest = np.lexsort((places, candidates.fetched_at, -together - _NEXT_TO_NOTHING * candidates.chances))
        first = _best_by_turns(alone, together)
        return np.concatenate([first, rest[~np.isin(rest, first)]])

    def impacts(self, candidates: Candidates, places: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return what a refresh of each is worth to this answer: as the only one, and when all others are right.

        Where the answer has no order, it has no places either, and nothing is worth more than anything else.
        """
        if not len(candidates) or not candidates.k:
            return np.zeros(len(candidates)), np.zeros(len(candidates))
        worlds = _Worlds.drawn_for(candidates)
        old, new = worlds.places_of(worlds.merits), worlds.places_of(worlds.drawn)
        said = worlds.says.any(axis=0)
        leaving = worth_of(worlds.k)[np.minimum(places, worlds.k)]
        together = candidates.chances * np.where(said, worlds.shifts(old, new), leaving)
        alone = worlds.gains(places, np.where(worlds.changed, new, old))
        return np.where(said, alone, together), together


def _best_by_turns(alone: FloatArray, together: FloatArray) -> IntArray:
    """Return the first few: the first by what it is worth alone; the more come before, the less that counts."""
    first: list[int] = []
    for made in range(min(len(alone), _TURNS)):
        worth = (alone + made * together) / (made + 1)
        worth[first] = 0.0
        best = int(np.argmax(worth))
        if worth[best] <= 0:
            break
        first.append(best)
    return np.array(first, dtype=np.int64)


def worth_of(k: int) -> FloatArray:
    """Return what each place of an answer of k is worth, and 0 for all behind: shares of nDCG and of precision, added.

    >>> worth_of(2).round(2).tolist()
    [1.83, 1.17, 0.0]
    >>> worth_of(0).tolist()
    [0.0]
    """
    return _gains_of(k) * _discounts_of(k) + _member_of(k)


@dataclass(frozen=True)
class _Worlds:
    """Candidates' merits as the replica has them, and worlds of those that they may have, a row each.

    ``drawn`` is what all have that have changed, where ``says`` that something is known of it, and ``changed`` which
    have in each world.
    """

    k: int
    merits: FloatArray
    drawn: FloatArray
    says: BoolArray
    changed: BoolArray

    @classmethod
    def drawn_for(cls, candidates: Candidates) -> _Worlds:
        """Draw as many worlds as there is time for."""
        count = len(candidates)
        drawn = candidates.outlook(np.arange(count), int(np.clip(_CELLS // count, _FEWEST, _MOST)))
        says = ~np.isnan(drawn)
        changed = says & (candidates.random.random(drawn.shape) < candidates.chances)
        k = min(candidates.k, max(count, _FURTHEST))
        return cls(k, _known(candidates.merits), drawn, says, changed)

    @cached_property
    def true(self) -> FloatArray:
        """What each has in each world."""
        return np.where(self.changed, self.drawn, self.merits)

    @cached_property
    def best(self) -> FloatArray:
        """The k + 1 best of each world, ascending."""
        first = max(0, len(self.merits) - self.k - 1)
        return np.sort(np.partition(self.true, first, axis=1)[:, first:], axis=1)

    def places_of(self, merits: FloatArray) -> IntArray:
        """Return the place that each would have with some merit among what the others have, k at most."""
        above = _above(self.best, np.broadcast_to(merits, self.true.shape))
        places: IntArray = np.clip(above - ((self.true >= self.best[:, :1]) & (self.true > merits)), 0, self.k)
        return places

    def shifts(self, old: IntArray, new: IntArray) -> FloatArray:
        """Return what it is worth on average that each is where it belongs, if it has changed and all others are right.

        It moves from the place that its old merit has among what the others have to the new one's.
        """
        worth = worth_of(self.k)
        moved = np.where(self.says, np.abs(worth[new] - worth[old]), 0.0)
        return np.asarray(moved.sum(axis=0) / np.maximum(self.says.sum(axis=0), 1))

    def gains(self, places: IntArray, true: IntArray) -> FloatArray:
        """Return by how much the answer is better on average if each alone is refreshed: never less than nothing.

        ``places`` are those that the replica's merits have, ``true`` those that all have in each world.
        """
        k, discounts = self.k, _discounts_of(self.k)
        gains, member = _gains_of(k), _member_of(k)
        shown = np.argsort(places)[: k + 1]
        # One candidate that leaves its place moves others up or down: those reported, and who comes next.
        at, theirs = np.arange(len(shown)), true[:, shown]
        down = gains[theirs] * (discounts[np.minimum(at + 1, k)] - discounts[at]) - member[theirs] * (at == k - 1)
        up = gains[theirs] * (discounts[at - 1] - discounts[at]) + member[theirs] * (at == k)
        sums_down, sums_up = _sums(down), _sums(up[:, 1:])
        best = np.sort(self.merits)[-k - 1 :]
        moving = np.flatnonzero((places < k) | (self.true > best[-k:][0]).any(axis=0))
        before, own = np.minimum(places[moving], k), true[:, moving]
        after = self._places_in_replica(moving, best, before)
        others = np.where(
            after < before,
            sums_down[:, before] - np.take_along_axis(sums_down, after, axis=1),
            np.take_along_axis(sums_up, after, axis=1) - sums_up[:, before],
        )
        more = gains[own] * (discounts[after] - discounts[before]) + member[own] * ((after < k) * 1.0 - (before < k))
        better = np.zeros(len(places))
        better[moving] = np.maximum((more + others).mean(axis=0), 0.0)
        return better

    def _places_in_replica(self, at: IntArray, best: FloatArray, before: IntArray) -> IntArray:
        """Return the place that some would have with what they have in a world among the replica's others.

        k at most; ``best`` are the replica's k + 1 best, ascending, ``before`` are the places that they have there.
        """
        true, merits = self.true[:, at], self.merits[at]
        above = len(best) - np.searchsorted(best, true, side="right")
        places: IntArray = np.clip(above - (merits > true), 0, self.k)
        return np.where(true == merits, before, places)


def _above(best: FloatArray, merits: FloatArray) -> IntArray:
    """Return how many of a row's best exceed each of its merits."""
    above = np.zeros(merits.shape, dtype=np.int64)
    if best.shape[1] <= _FEW_PLACES:
        for place in range(best.shape[1]):
            above += best[:, place, None] > merits
        return above
    for row, (among, each) in enumerate(zip(best, merits, strict=True)):
        above[row] = len(among) - np.searchsorted(among, each, side="right")
    return above


def _gains_of(k: int) -> FloatArray:
    """Return what is gained by each place that is right, and 0 for all behind, as a share of the best nDCG's gain."""
    gains = np.append(2.0 ** -np.arange(k) - 2.0**-k, 0.0)
    return _shares(gains, float((gains * _discounts_of(k)).sum()))


def _member_of(k: int) -> FloatArray:
    """Return what is gained by being at each place at all, and 0 for what is not in the answer."""
    return _shares(np.append(np.full(k, _MEMBERSHIP), 0.0), k)


def _shares(gains: FloatArray, whole: float) -> FloatArray:
    """Return gains as shares of a whole; of nothing, as of an answer without places, each share is nothing."""
    return gains / whole if whole else np.zeros_like(gains)


def _discounts_of(k: int) -> FloatArray:
    """Return by how much each place is discounted where it is reported, and 0 for what is not."""
    return np.append(1 / np.log2(np.arange(k) + 2), 0.0)


def _sums(steps: FloatArray) -> FloatArray:
    """Return the sums of the steps before each, of a row."""
    return np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)


def _known(merits: FloatArray) -> FloatArray:
    return np.where(np.isnan(merits), -np.inf, merits)


def _places(merits: FloatArray) -> IntArray:
    """Return each candidate's place by its merit, of equals the first first."""
    places = np.empty(len(merits), dtype=np.int64)
    places[np.argsort(-merits, kind="stable")] = np.arange(len(merits))
    return places
