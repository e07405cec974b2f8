"""Drift with a daily rhythm: values and the rate of changes vary with the time of day."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import FloatArray, GeneratedChanges, at_random_times, in_order
from acquatop.lab.generate.levels import levels, spreads


@dataclass(frozen=True)
class Rhythm:
    """Values that swing around the user's level once a ``day``, drift, and are a little noisy.

    A value changes every ``interval`` seconds on average: at the user's busiest hour ten times as
    often as at the quietest. Users are in many time zones. A day is shorter than a real one, so
    that a recording holds several.
    """

    interval: float = 150.0
    day: float = 3_000.0

    def __call__(self, users: int, seconds: float, random: np.random.Generator) -> GeneratedChanges:
        """Return the values. O(n log n) for n changes."""
        middles, zones = levels(users, random), random.random(users)
        swings = 2 * spreads(middles) * random.random(users)
        drifts = spreads(middles) / self.day * random.standard_normal(users)
        rates = random.gamma(2.0, 0.5 / self.interval, users)
        # Changes are drawn at the busiest hour's rate, then thinned by how busy the hour is.
        busiest = 20 / 11
        times, whose = at_random_times(busiest * rates, seconds, random)
        kept = random.random(len(times)) < 0.55 + 0.45 * np.cos(self._angles(times, zones[whose]))
        times, whose = (
            np.concatenate([np.zeros(users), times[kept]]),
            np.concatenate([np.arange(users), whose[kept]]),
        )
        values = (
            middles[whose]
            + swings[whose] * np.sin(self._angles(times, zones[whose]))
            + drifts[whose] * times
        )
        return in_order(
            times,
            whose,
            values + 0.1 * spreads(middles[whose]) * random.standard_normal(len(times)),
        )

    def _angles(self, times: FloatArray, zones: FloatArray) -> FloatArray:
        return 2 * np.pi * (times / self.day + zones)
