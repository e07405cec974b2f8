"""Mixed values: noise on some users' values, and none on others'."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import GeneratedChanges, at_random_times, in_order
from acquatop.lab.generate.levels import levels, spreads


@dataclass(frozen=True)
class Mixed:
    """Values that are redrawn every ``interval`` seconds for a ``share`` of the users.

    The others' values seldom move, every ``calm`` seconds on average, to a new level where they
    stay.
    """

    interval: float = 80.0
    calm: float = 3_000.0
    share: float = 0.4

    def __call__(self, users: int, seconds: float, random: np.random.Generator) -> GeneratedChanges:
        """Return the values. O(n log n) for n changes."""
        middles, is_noisy = levels(users, random), random.random(users) < self.share
        rates = np.where(is_noisy, 1 / self.interval, random.gamma(1.0, 1 / self.calm, users))
        times, later = at_random_times(rates, seconds, random)
        whose = np.concatenate([np.arange(users), later])
        around = middles[whose] + spreads(middles[whose]) * random.standard_normal(len(whose))
        anew = np.where(np.arange(len(whose)) < users, middles[whose], levels(len(whose), random))
        return in_order(
            np.concatenate([np.zeros(users), times]), whose, np.where(is_noisy[whose], around, anew)
        )
