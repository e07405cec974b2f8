"""Rare changes: most values in the replica are right, and stay so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import GeneratedChanges, at_random_times, in_order
from acquatop.lab.generate.levels import levels, spreads


@dataclass(frozen=True)
class Rare:
    """Values redrawn around the user's level every ``interval`` seconds on average.

    Some users' values change more often.
    """

    interval: float = 4_000.0

    def __call__(self, users: int, seconds: float, random: np.random.Generator) -> GeneratedChanges:
        """Return the values. O(n log n) for n changes."""
        middles = levels(users, random)
        times, whose = at_random_times(random.gamma(1.0, 1 / self.interval, users), seconds, random)
        times, whose = (
            np.concatenate([np.zeros(users), times]),
            np.concatenate([np.arange(users), whose]),
        )
        return in_order(
            times,
            whose,
            middles[whose] + spreads(middles[whose]) * random.standard_normal(len(whose)),
        )
