"""Random walks: each change is a step from the present value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import FloatArray, GeneratedChanges, at_random_times, in_order

_HIGHEST = 100.0


@dataclass(frozen=True)
class Walks:
    """Values that step up or down at random times, every ``interval`` seconds on average.

    Some users' values step more often. Users have their own step sizes, ``step`` in the median.
    Values are reflected at 0 and at 100.
    """

    interval: float = 240.0
    step: float = 8.0

    def __call__(self, users: int, seconds: float, random: np.random.Generator) -> GeneratedChanges:
        """Return the values. O(n log n) for n changes."""
        starts = random.uniform(0.0, _HIGHEST, users)
        rates = random.gamma(2.0, 0.5 / self.interval, users)
        sizes = self.step * random.lognormal(0.0, 0.5, users)
        times, whose = at_random_times(rates, seconds, random)
        walked = np.cumsum(sizes[whose] * random.standard_normal(len(times)))
        # One cumulative sum for all users; the sum before each user's first step is subtracted.
        firsts = np.searchsorted(whose, np.arange(users))
        before = np.concatenate([[0.0], walked])[firsts]
        values = _turned_back(starts[whose] + walked - before[whose])
        return in_order(
            np.concatenate([np.zeros(users), times]),
            np.concatenate([np.arange(users), whose]),
            np.concatenate([starts, values]),
        )


def _turned_back(values: FloatArray) -> FloatArray:
    """Return the positions of walks reflected at their bounds.

    >>> _turned_back(np.array([-1.0, 50.0, 101.0, 230.0]))
    array([ 1., 50., 99., 30.])
    """
    folded = np.abs(values) % (2 * _HIGHEST)
    return np.minimum(folded, 2 * _HIGHEST - folded)
