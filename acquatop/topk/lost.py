"""What is remembered of the arrivals that are held no longer: enough to know what they could do."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from acquatop.topk.contract import AnyArray, FloatArray, IntArray, Scoring

LOST = "a solution that was let go, or came too late, could belong here"
"""Why an answer is in doubt where something that is held no longer could have a place in it."""

_NEWEST = 2**63
_BUCKETS = 32
"""How many ranges of parts are looked at one by one when remote values change."""


class Rank(NamedTuple):
    """A place in the one total order: the smaller the better. ``after`` 1 stands just after an arrival's own place."""

    minus_merit: float
    minus_time: int
    identity: Any
    after: int = 0

    @property
    def merit(self) -> float:
        """The merit of what stands at this place."""
        return -self.minus_merit


def best_with(merit: float) -> Rank:
    """Return the best place that anything of a merit can have.

    >>> best_with(2.0) < Rank(-2.0, -(10**15), "a") < best_with(1.0)
    True
    """
    # No time is as new, so identities are never compared with this one.
    return Rank(-merit, -_NEWEST, None)


def rank_from(values: Sequence[Any]) -> Rank:
    """Return a place that was written as a list."""
    minus_merit, minus_time, identity, after = values
    return Rank(minus_merit, minus_time, tuple(identity) if isinstance(identity, list) else identity, after)


def finite_or_any(reach: float) -> float:
    """Return how far merits reach: without a limit where that is no number.

    >>> finite_or_any(3.0), finite_or_any(math.nan)
    (3.0, inf)
    """
    return math.inf if math.isnan(reach) else reach


@dataclass
class _Range:
    """Where the parts of what was lost lie, by the last window that it was in."""

    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def widen(self, lows: tuple[float, ...], highs: tuple[float, ...]) -> None:
        self.lows = tuple(map(min, self.lows, lows))
        self.highs = tuple(map(max, self.highs, highs))


@dataclass
class Lost:
    """The best place of what each window has lost, and the ranges of its parts.

    What is lost in a window is lost in all that hold it, so one entry stands for all windows up to
    the last: the best places form a staircase (the later the window, the worse), of which only the
    steps are kept. Noting takes O(s) for s steps, of which there are few in random order and at
    most one per window; the ranges are one per window.
    """

    steps: list[tuple[int, Rank]] = field(default_factory=list)
    ranges: dict[int, _Range] = field(default_factory=dict)

    def note(self, last: int, rank: Rank) -> None:
        """Note that something with a place was lost from the windows up to ``last``."""
        at = bisect_left(self.steps, last, key=_last_of)
        if at < len(self.steps) and self.steps[at][1] <= rank:
            return
        start = at
        while start > 0 and self.steps[start - 1][1] >= rank:
            start -= 1
        stop = at + 1 if at < len(self.steps) and self.steps[at][0] == last else at
        self.steps[start:stop] = [(last, rank)]

    def note_all(self, lasts: IntArray, merits: FloatArray, times: IntArray, identities: AnyArray) -> None:
        """Note several that were lost, best first."""
        ahead = np.maximum.accumulate(lasts)
        # Only what outlives all that is better can matter.
        for at in (0, *((ahead[1:] > ahead[:-1]).nonzero()[0] + 1).tolist()):
            identity = identities[at]
            identity = identity.item() if isinstance(identity, np.generic) else identity
            self.note(int(lasts[at]), Rank(-float(merits[at]), -int(times[at]), identity))

    def widen(self, last: int, lows: tuple[float, ...], highs: tuple[float, ...]) -> None:
        """Note where the parts of something lost from the windows up to ``last`` lie."""
        # What is no number may be taken for any.
        lows = tuple(-math.inf if math.isnan(low) else low for low in lows)
        highs = tuple(math.inf if math.isnan(high) else high for high in highs)
        known = self.ranges.get(last)
        if known is None:
            self.ranges[last] = _Range(lows, highs)
        else:
            known.widen(lows, highs)

    def widen_all(self, lasts: IntArray, parts: tuple[FloatArray, ...]) -> None:
        """Note where the parts of several that were lost lie."""
        order = np.argsort(lasts, kind="stable")
        in_order = lasts[order]
        starts = np.concatenate(([0], (in_order[1:] > in_order[:-1]).nonzero()[0] + 1))
        lows = [np.minimum.reduceat(part[order], starts).tolist() for part in parts]
        highs = [np.maximum.reduceat(part[order], starts).tolist() for part in parts]
        for at, last in enumerate(in_order[starts].tolist()):
            self.widen(last, tuple(low[at] for low in lows), tuple(high[at] for high in highs))

    def best(self, window: int) -> Rank | None:
        """Return the best place of what a window has lost; None if it has lost nothing."""
        at = bisect_left(self.steps, window, key=_last_of)
        return self.steps[at][1] if at < len(self.steps) else None

    def parts(self, window: int) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        """Return the ranges, lows and highs, of the parts of what a window has lost."""
        return _hull([known for last, known in self.ranges.items() if last >= window])

    def raise_to_reach(self, scoring: Scoring, keys: AnyArray) -> None:
        """Note that what was lost may by now be worth what the present values of some keys make possible."""
        for last, (lows, highs) in self._buckets():
            reach = finite_or_any(scoring.reach(lows, highs, keys))
            if reach > -math.inf:
                self.note(last, best_with(reach))

    def _buckets(self) -> Iterator[tuple[int, tuple[tuple[float, ...], tuple[float, ...]]]]:
        """Yield ranges, those of neighbouring windows taken together where there are many."""
        lasts = sorted(self.ranges)
        size = math.ceil(len(lasts) / _BUCKETS)
        for start in range(0, len(lasts), max(1, size)):
            several = lasts[start : start + size]
            hull = _hull([self.ranges[last] for last in several])
            if hull is not None:
                yield several[-1], hull

    def close_before(self, window: int) -> None:
        """Forget what only closed windows have lost."""
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


def _hull(ranges: list[_Range]) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    if not ranges:
        return None
    lows = tuple(map(min, zip(*(each.lows for each in ranges), strict=True)))
    highs = tuple(map(max, zip(*(each.highs for each in ranges), strict=True)))
    return lows, highs
