"""Summary of the arrivals that are no longer held: bounds on their places and merits."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, IntArray, Scoring

LOST = "a solution that was let go, or came too late, could belong here"
"""Reason of an approximate answer if an arrival that is not held could belong to it."""

_NEWEST = 2**63
_BUCKETS = 32
"""Largest number of ranges of parts that are tested when remote values change."""


class Rank(NamedTuple):
    """A place in the one total order: the smaller the better.

    ``after`` = 1 stands just after an arrival's own place.
    """

    minus_merit: float
    minus_time: int
    identity: Any
    after: int = 0

    @property
    def merit(self) -> float:
        """Merit of an arrival at this place."""
        return -self.minus_merit


Ranges = tuple[tuple[float, ...], tuple[float, ...]]
"""Lows and highs of parts."""


def best_with(merit: float) -> Rank:
    """Return the best place of any arrival with a merit.

    >>> best_with(2.0) < Rank(-2.0, -(10**15), "a") < best_with(1.0)
    True
    """
    # No time is this new, so the identity is never compared.
    return Rank(-merit, -_NEWEST, None)


def rank_from(values: Sequence[Any]) -> Rank:
    """Return the place that was written as a list."""
    minus_merit, minus_time, identity, after = values
    return Rank(
        minus_merit, minus_time, tuple(identity) if isinstance(identity, list) else identity, after
    )


def finite_or_any(reach: float) -> float:
    """Return the reach of merits; infinity instead of NaN.

    >>> finite_or_any(3.0), finite_or_any(math.nan)
    (3.0, inf)
    """
    return math.inf if math.isnan(reach) else reach


@dataclass
class _Range:
    """Ranges of the parts of lost arrivals with the same last window."""

    lows: tuple[float, ...]
    highs: tuple[float, ...]

    @property
    def both(self) -> Ranges:
        return self.lows, self.highs

    def widen(self, lows: tuple[float, ...], highs: tuple[float, ...]) -> None:
        self.lows = tuple(map(min, self.lows, lows))
        self.highs = tuple(map(max, self.highs, highs))


@dataclass
class DroppedBounds:
    """Best place and ranges of parts of the arrivals that each window has lost.

    An arrival lost in one window is lost in all windows that hold it, so one entry stands for all
    windows up to its last. The best places form a staircase (the later the window, the worse the
    place), and only its steps are kept. Noting takes O(s) for s steps; there are few in random
    order and at most one per window. There is one set of ranges per window.
    """

    steps: list[tuple[int, Rank]] = field(default_factory=list)
    ranges: dict[int, _Range] = field(default_factory=dict)

    def note(self, last: int, rank: Rank) -> None:
        """Note that an arrival with a place was lost from the windows up to ``last``."""
        at = bisect_left(self.steps, last, key=_last_of)
        if at < len(self.steps) and self.steps[at][1] <= rank:
            return
        start = at
        while start > 0 and self.steps[start - 1][1] >= rank:
            start -= 1
        stop = at + 1 if at < len(self.steps) and self.steps[at][0] == last else at
        self.steps[start:stop] = [(last, rank)]

    def note_all(
        self, lasts: IntArray, merits: FloatArray, times: IntArray, identities: AnyArray
    ) -> None:
        """Note several lost arrivals, best first."""
        ahead = np.maximum.accumulate(lasts)
        # Only arrivals that outlive all better ones can matter.
        for at in (0, *((ahead[1:] > ahead[:-1]).nonzero()[0] + 1).tolist()):
            identity = identities[at]
            identity = identity.item() if isinstance(identity, np.generic) else identity
            self.note(int(lasts[at]), Rank(-float(merits[at]), -int(times[at]), identity))

    def widen(self, last: int, lows: tuple[float, ...], highs: tuple[float, ...]) -> None:
        """Note the ranges of the parts of an arrival lost from the windows up to ``last``."""
        # NaN may stand for any number, so the range is unbounded.
        lows = tuple(-math.inf if math.isnan(low) else low for low in lows)
        highs = tuple(math.inf if math.isnan(high) else high for high in highs)
        known = self.ranges.get(last)
        if known is None:
            self.ranges[last] = _Range(lows, highs)
        else:
            known.widen(lows, highs)

    def widen_all(self, lasts: IntArray, parts: tuple[FloatArray, ...]) -> None:
        """Note the ranges of the parts of several lost arrivals."""
        order = np.argsort(lasts, kind="stable")
        in_order = lasts[order]
        starts = np.concatenate(([0], (in_order[1:] > in_order[:-1]).nonzero()[0] + 1))
        lows = [np.minimum.reduceat(part[order], starts).tolist() for part in parts]
        highs = [np.maximum.reduceat(part[order], starts).tolist() for part in parts]
        for at, last in enumerate(in_order[starts].tolist()):
            self.widen(last, tuple(low[at] for low in lows), tuple(high[at] for high in highs))

    def has_range_of(self, last: int, parts: tuple[FloatArray, ...]) -> bool:
        """Return whether the ranges of a last window contain the parts of some arrivals."""
        known = self.ranges.get(last)
        return known is not None and all(
            bool(((part >= low) & (part <= high)).all())
            for part, low, high in zip(parts, known.lows, known.highs, strict=True)
        )

    def best(self, window: int) -> Rank | None:
        """Return the best place of a window's lost arrivals; None if there are none."""
        at = bisect_left(self.steps, window, key=_last_of)
        return self.steps[at][1] if at < len(self.steps) else None

    def parts(self, window: int) -> Ranges | None:
        """Return the ranges, lows and highs, of the parts of a window's lost arrivals."""
        known = [each.both for last, each in self.ranges.items() if last >= window]
        return hull(known) if known else None

    def raise_to_reach(self, scoring: Scoring, keys: AnyArray) -> None:
        """Raise the bounds on lost arrivals to the merits that some keys' present values allow."""
        for last, (lows, highs) in self._buckets():
            reach = finite_or_any(scoring.reach(lows, highs, keys))
            if reach > -math.inf:
                self.note(last, best_with(reach))

    def _buckets(self) -> Iterator[tuple[int, Ranges]]:
        """Yield ranges. If there are many, those of neighbouring windows are merged."""
        lasts = sorted(self.ranges)
        size = math.ceil(len(lasts) / _BUCKETS)
        for start in range(0, len(lasts), max(1, size)):
            several = lasts[start : start + size]
            yield several[-1], hull([self.ranges[last].both for last in several])

    def close_before(self, window: int) -> None:
        """Forget the entries of closed windows."""
        del self.steps[: bisect_left(self.steps, window, key=_last_of)]
        for last in [last for last in self.ranges if last < window]:
            del self.ranges[last]

    def _check(self) -> None:
        """Assert every invariant."""
        for (last, rank), (later, worse) in zip(self.steps, self.steps[1:], strict=False):
            assert last < later
            assert rank < worse
        for known in self.ranges.values():
            assert all(low <= high for low, high in zip(known.lows, known.highs, strict=True))


def _last_of(step: tuple[int, Rank]) -> int:
    return step[0]


def hull(several: Sequence[Ranges]) -> Ranges:
    """Return the smallest ranges that contain several.

    >>> hull([((0.0, 5.0), (1.0, 6.0)), ((-1.0, 5.5), (0.0, 7.0))])
    ((-1.0, 5.0), (1.0, 7.0))
    """
    lows, highs = zip(*several, strict=True)
    return tuple(map(min, zip(*lows, strict=True))), tuple(map(max, zip(*highs, strict=True)))
