"""Expected impact: refresh first the candidates expected to improve the answer most."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from replica.rankers.contract import Candidates, FloatArray, IntArray
from replica.spending.pace import SpendingPace

BoolArray = npt.NDArray[np.bool_]

_CELLS = 1 << 14
_FEWEST, _MOST = 16, 256
"""Bounds of the number of sampled worlds: as many as make ``_CELLS`` cells, within these."""

_FEW_PLACES = 16
"""Number of places up to which comparing is faster than binary search."""

_MEMBERSHIP = 2.0
"""Weight of precision relative to nDCG."""

_TURNS = 32
"""Number of refreshes after which the worth of one on its own no longer matters."""

_FURTHEST = 1 << 10
"""An answer of more places, and of more than candidates, is weighed as one of so many: what is
behind gains nothing.
"""

_NEXT_TO_NOTHING = 1e-9
"""Tie-breaker: among candidates without visible impact, prefer the likelier to have changed."""


class ExpectedImpact:
    """All candidates, ordered by the expected effect of a refresh on this answer and the next.

    Worlds are sampled in which each candidate has another merit with the chance that it has
    changed. The worth of a refresh depends on which others are made. Two values are computed: its
    worth as the only refresh (``gains``), and its worth if all other candidates are right
    (``shifts``). The first in the order may be the only one refreshed, so it is chosen by the first
    value; further down the second value counts more. Both are up to twice as large for a candidate
    that is also in the next evaluation, if its value lasts that long. If nothing is known of
    changed merits, a candidate in the answer is assumed to leave it when it changes. Nothing is
    worth anything to an answer without places: then the likelier to have changed is first, of
    equals the one fetched longest ago.

    If what is not spent may be spent later, those that are worth too little now are left out
    (:class:`~replica.spending.pace.SpendingPace`).

    O(n log n), and O(worlds · n log k).
    """

    def __init__(self) -> None:
        self._pace = SpendingPace()

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return the positions of those that are worth asking for."""
        order, _ = self.appraised(candidates)
        return order

    def appraised(self, candidates: Candidates) -> tuple[IntArray, FloatArray]:
        """Return the positions of those that are worth asking for, and their worth."""
        places = _places(_known(candidates.merits))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            lasts = np.nan_to_num(
                np.exp(-candidates.slide / np.maximum(candidates.intervals, 0.0)), nan=0.0
            )
        serves = 1 + np.where(candidates.remaining > 0, lasts, 0.0)
        alone, together = (serves * each for each in self.impacts(candidates, places))
        rest = np.lexsort(
            (places, candidates.fetched_at, -together - _NEXT_TO_NOTHING * candidates.chances)
        )
        first, worths = _best_by_turns(alone, together)
        rest = rest[~np.isin(rest, first)]
        worths = np.concatenate([worths, together[rest]])
        asked = self._pace.worth_asking(worths, candidates.allowance)
        return np.concatenate([first, rest])[asked], worths[asked]

    def snapshot(self) -> bytes:
        """Return the whole state."""
        return self._pace.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        self._pace.resume(snapshot)

    def impacts(self, candidates: Candidates, places: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return the worth of each refresh: as the only one, and if all others are right.

        All are zero if the answer has no places.
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


def _best_by_turns(alone: FloatArray, together: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the first few, the first by worth alone, which counts less with each turn; and the
    worth of each.
    """
    first: list[int] = []
    worths: list[float] = []
    for made in range(min(len(alone), _TURNS)):
        worth = (alone + made * together) / (made + 1)
        worth[first] = 0.0
        best = int(np.argmax(worth))
        if worth[best] <= 0:
            break
        first.append(best)
        worths.append(float(worth[best]))
    return np.array(first, dtype=np.int64), np.array(worths)


def worth_of(k: int) -> FloatArray:
    """Return the worth of each place of k, 0 beyond: its shares of nDCG and precision, added.

    >>> worth_of(2).round(2).tolist()
    [1.83, 1.17, 0.0]
    >>> worth_of(0).tolist()
    [0.0]
    """
    return _gains_of(k) * _discounts_of(k) + _member_of(k)


@dataclass(frozen=True)
class _Worlds:
    """Candidates' merits in the replica, and in sampled worlds, one row each.

    ``drawn`` are the merits if changed, ``says`` marks those that are known, and ``changed`` marks
    the candidates that have changed in each world.
    """

    k: int
    merits: FloatArray
    drawn: FloatArray
    says: BoolArray
    changed: BoolArray

    @classmethod
    def drawn_for(cls, candidates: Candidates) -> _Worlds:
        """Sample as many worlds as the limit of cells allows."""
        count = len(candidates)
        drawn = candidates.outlook(np.arange(count), int(np.clip(_CELLS // count, _FEWEST, _MOST)))
        says = ~np.isnan(drawn)
        changed = says & (candidates.random.random(drawn.shape) < candidates.chances)
        k = min(candidates.k, max(count, _FURTHEST))
        return cls(k, _known(candidates.merits), drawn, says, changed)

    @cached_property
    def true(self) -> FloatArray:
        """Merit of each candidate in each world."""
        return np.where(self.changed, self.drawn, self.merits)

    @cached_property
    def best(self) -> FloatArray:
        """The k + 1 best merits of each world, ascending."""
        first = max(0, len(self.merits) - self.k - 1)
        return np.sort(np.partition(self.true, first, axis=1)[:, first:], axis=1)

    def places_of(self, merits: FloatArray) -> IntArray:
        """Return each one's place if it had a merit, among the others' true ones, k at most."""
        above = _above(self.best, np.broadcast_to(merits, self.true.shape))
        places: IntArray = np.clip(
            above - ((self.true >= self.best[:, :1]) & (self.true > merits)), 0, self.k
        )
        return places

    def shifts(self, old: IntArray, new: IntArray) -> FloatArray:
        """Return the mean worth of placing each right, if it has changed and all others are right.

        It moves from the place of its old merit to that of its new one, both among the others' true
        merits.
        """
        worth = worth_of(self.k)
        moved = np.where(self.says, np.abs(worth[new] - worth[old]), 0.0)
        return np.asarray(moved.sum(axis=0) / np.maximum(self.says.sum(axis=0), 1))

    def gains(self, places: IntArray, true: IntArray) -> FloatArray:
        """Return the mean improvement of the answer if each alone is refreshed: never less than 0.

        ``places`` are the places by the replica's merits, ``true`` those in each world.
        """
        k, discounts = self.k, _discounts_of(self.k)
        gains, member = _gains_of(k), _member_of(k)
        shown = np.argsort(places)[: k + 1]
        # A candidate that leaves its place shifts others: those reported, and the next one.
        at, theirs = np.arange(len(shown)), true[:, shown]
        down = gains[theirs] * (discounts[np.minimum(at + 1, k)] - discounts[at]) - member[
            theirs
        ] * (at == k - 1)
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
        more = gains[own] * (discounts[after] - discounts[before]) + member[own] * (
            (after < k) * 1.0 - (before < k)
        )
        better = np.zeros(len(places))
        better[moving] = np.maximum((more + others).mean(axis=0), 0.0)
        return better

    def _places_in_replica(self, at: IntArray, best: FloatArray, before: IntArray) -> IntArray:
        """Return the places of candidates ``at`` among the replica's others, by true merit.

        At most k. ``best`` are the replica's k + 1 best merits, ascending; ``before`` are the
        candidates' places in the replica.
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
    """Return the gain of each correct place, 0 beyond k, as a share of the ideal DCG."""
    gains = np.append(2.0 ** -np.arange(k) - 2.0**-k, 0.0)
    return _shares(gains, float((gains * _discounts_of(k)).sum()))


def _member_of(k: int) -> FloatArray:
    """Return what is gained by being at each place at all, and 0 for what is not in the answer."""
    return _shares(np.append(np.full(k, _MEMBERSHIP), 0.0), k)


def _shares(gains: FloatArray, whole: float) -> FloatArray:
    """Return gains as shares of a whole; of nothing, as of an answer without places, each share is
    nothing.
    """
    return gains / whole if whole else np.zeros_like(gains)


def _discounts_of(k: int) -> FloatArray:
    """Return the discount of each reported place, and 0 for unreported ones."""
    return np.append(1 / np.log2(np.arange(k) + 2), 0.0)


def _sums(steps: FloatArray) -> FloatArray:
    """Return the sums of the steps before each, by row."""
    return np.concatenate([np.zeros((len(steps), 1)), np.cumsum(steps, axis=1)], axis=1)


def _known(merits: FloatArray) -> FloatArray:
    return np.where(np.isnan(merits), -np.inf, merits)


def _places(merits: FloatArray) -> IntArray:
    """Return each candidate's place by merit; ties keep their order."""
    places = np.empty(len(merits), dtype=np.int64)
    places[np.argsort(-merits, kind="stable")] = np.arange(len(merits))
    return places
