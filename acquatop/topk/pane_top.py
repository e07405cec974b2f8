"""Best arrivals of one pane, collected in batches of any size."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from acquatop.topk.columns import among, newest_of
from acquatop.topk.contract import AnyArray, FloatArray, IntArray, Rows, Scoring
from acquatop.topk.dropped_bounds import Rank, best_with
from acquatop.topk.order import best
from acquatop.topk.threshold_filter import ThresholdFilter

_NOTHING = -math.inf
_MANY = 256
"""Number of arrivals, besides four times the capacity, that are not worth another look."""


@dataclass
class Scored:
    """Rows with their merits, best first."""

    merits: FloatArray
    rows: Rows

    def take(self, at: IntArray | slice) -> Scored:
        """Return the rows at some positions."""
        return Scored(self.merits[at], self.rows.take(at))

    def __len__(self) -> int:
        return len(self.merits)


@dataclass
class PaneTop:
    """The best ``capacity`` of a pane, or all of it if newer arrivals may replace older ones.

    All arrivals of a pane enter and leave every window together. If no arrival replaces another,
    only the pane's best can ever matter. The merit of the last of them is a bar that most others do
    not pass: these cost one comparison each and are dropped. If arrivals may replace older ones,
    all are held until the pane is complete, as each may still make room for another.
    """

    first: int
    last: int
    distinct: bool
    merits: list[FloatArray] = field(default_factory=list)
    rows: list[Rows] = field(default_factory=list)
    size: int = 0
    bar: float = _NOTHING
    has_let_go: bool = False
    floor: Rank | None = None
    """Best place that any dropped arrival had before merits changed."""
    lows: tuple[float, ...] = ()
    highs: tuple[float, ...] = ()

    def add(
        self,
        merits: FloatArray,
        arrivals: Rows,
        capacity: int,
        sieve: ThresholdFilter,
        guess: float,
    ) -> IntArray:
        """Add arrivals and return the positions of those without a merit.

        ``guess`` is a merit that ``capacity`` arrivals of a batch are likely to reach. A wrong
        guess costs only time.
        """
        kept = (
            self._passing(merits, capacity, sieve, guess)
            if self.distinct
            else np.arange(len(merits))
        )
        passed = merits.take(kept)
        without = np.isnan(passed)
        rejected = kept[:0]
        if without.any():
            rejected = kept[without]
            if self.distinct:
                kept, passed = kept[~without], passed[~without]
        if len(kept) < len(merits) - len(rejected):
            self.has_let_go = True
        if len(kept):
            self.merits.append(passed)
            # Copied: the arrays handed in belong to the caller.
            self.rows.append(arrivals.take(kept))
            self.size += len(kept)
        if self.distinct and self.size > 2 * capacity + 64:
            self._prune(capacity)
        return rejected

    def widen(self, parts: tuple[FloatArray, ...]) -> None:
        """Note the ranges of arrivals' parts."""
        self.widen_to(tuple(map(_lowest, parts)), tuple(map(_highest, parts)))

    def widen_to(self, lows: tuple[float, ...], highs: tuple[float, ...]) -> None:
        """Note ranges that contain arrivals' parts."""
        self.lows = tuple(map(min, self.lows, lows)) if self.lows else lows
        self.highs = tuple(map(max, self.highs, highs)) if self.highs else highs

    def newest(self) -> tuple[FloatArray, Rows]:
        """Return the newest arrival of each identity with its merit, which may be NaN."""
        merits, rows = self._all()
        at = newest_of(rows.identities, rows.times)
        return merits[at], rows.take(at)

    def best(self, capacity: int) -> Scored:
        """Return the pane's best, best first."""
        merits, rows = self._all()
        order = best(capacity, merits, rows.times, rows.identities)
        self.has_let_go |= len(order) < len(merits)
        return Scored(merits[order], rows.take(order))

    def merit_at(self, place: int) -> float:
        """Return the merit at a place among the arrivals; minus infinity if they are fewer."""
        if self.size < place or not self.distinct:
            return _NOTHING
        merits, _ = self._all()
        return float(np.partition(merits, self.size - place)[self.size - place])

    def lost(self, found: Scored, capacity: int) -> Rank | None:
        """Return the best place of dropped arrivals, given the pane's best;

        None if none was dropped.
        """
        if not self.has_let_go or len(found) < capacity:
            return self.floor
        after = place(found, -1, after=1)
        return after if self.floor is None else min(after, self.floor)

    def change(self, scoring: Scoring, keys: AnyArray, capacity: int) -> Rows | None:
        """Rescore the rows of some keys; return those now without a merit."""
        if not self.size:
            return None
        merits, rows = self._all()
        touched = np.flatnonzero(among(rows.keys, keys))
        if not len(touched):
            return None
        self.fix_floor(capacity)
        changed = merits.copy()
        changed[touched] = scoring.merits(
            rows.keys[touched], tuple(part[touched] for part in rows.parts)
        )
        gone = np.isnan(changed) & ~np.isnan(merits)
        # An arrival without a merit still replaces older ones.
        kept = np.flatnonzero(~gone) if self.distinct else np.arange(len(changed))
        self._set(changed[kept], rows.take(kept))
        return rows.take(np.flatnonzero(gone)) if gone.any() else None

    def remove(self, identities: AnyArray, capacity: int) -> None:
        """Remove arrivals by identity."""
        if self.size:
            merits, rows = self._all()
            self.fix_floor(capacity)
            kept = np.flatnonzero(~among(rows.identities, identities))
            self._set(merits[kept], rows.take(kept))

    def let_go(self, capacity: int) -> None:
        """Drop all but the best, before merits change.

        This makes the result independent of the batches in which arrivals came.
        """
        if self.distinct and self.size > capacity:
            self._prune(capacity)

    def fix_floor(self, capacity: int) -> None:
        """Fix the best place of dropped arrivals, before merits or the capacity change.

        Until now they rank after the present last one. The bar is reset.
        """
        if self.has_let_go and self.size:
            self.floor = self.lost(self.best(capacity), capacity)
        self.bar = _NOTHING

    def raise_floor(self, merit: float) -> None:
        """Note that dropped arrivals may by now be worth up to a merit."""
        floor = best_with(merit)
        self.floor = floor if self.floor is None else min(floor, self.floor)

    def _passing(
        self, merits: FloatArray, capacity: int, sieve: ThresholdFilter, guess: float
    ) -> IntArray:
        """Return the positions of arrivals that pass the bar, and of those without a merit."""
        if self.size >= capacity:
            return sieve.passing(merits, self.bar)
        if len(merits) <= capacity:
            return np.arange(len(merits))
        # The pane's last place is not known yet. If the guess holds, one comparison is enough.
        kept = sieve.passing(merits, guess)
        passed = merits.take(kept)
        if np.count_nonzero(passed >= guess) < capacity:
            return sieve.passing(merits, _bar(merits, capacity))
        if len(kept) <= 4 * capacity + _MANY:
            return kept
        return kept.take(sieve.passing(passed, _bar(passed, capacity)))

    def _prune(self, capacity: int) -> None:
        merits, rows = self._all()
        order = best(capacity, merits, rows.times, rows.identities)
        self.has_let_go = True
        self._set(merits[order], rows.take(order))
        self.bar = float(merits[order[-1]])

    def _all(self) -> tuple[FloatArray, Rows]:
        if len(self.rows) > 1:
            self.merits, self.rows = [np.concatenate(self.merits)], [Rows.together(self.rows)]
        return self.merits[0], self.rows[0]

    def _set(self, merits: FloatArray, rows: Rows) -> None:
        self.merits, self.rows, self.size = [merits], [rows], len(merits)


def place(scored: Scored, at: int, after: int = 0) -> Rank:
    """Return a row's place in the total order."""
    identity = scored.rows.identities[at]
    identity = identity.item() if isinstance(identity, np.generic) else identity
    return Rank(-float(scored.merits[at]), -int(scored.rows.times[at]), identity, after)


def _lowest(part: FloatArray) -> float:
    # NaN may stand for any number, so the range is unbounded.
    lowest = float(part.min())
    return -math.inf if math.isnan(lowest) else lowest


def _highest(part: FloatArray) -> float:
    highest = float(part.max())
    return math.inf if math.isnan(highest) else highest


def _bar(merits: FloatArray, capacity: int) -> float:
    """Return a merit that at least ``capacity`` arrivals reach, close to the highest such merit.

    Only a sample is searched: its bar is valid for all, and quickly found. Minus infinity if the
    sample is too small.
    """
    part = merits[: max(4 * capacity, len(merits) // 16)]
    part = part[~np.isnan(part)]
    return (
        float(np.partition(part, len(part) - capacity)[len(part) - capacity])
        if len(part) >= capacity
        else _NOTHING
    )
