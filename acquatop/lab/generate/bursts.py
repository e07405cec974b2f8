"""Bursts: at any time few values change, and these often."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import GeneratedChanges, at_random_times, in_order
from acquatop.lab.generate.levels import levels, spreads


@dataclass(frozen=True)
class Bursts:
    """Values that change every ``interval`` seconds for about ``lasting``, then rest for ``rest``.

    Some users rest less than others. Within a burst each change draws the value anew around its
    user's level.
    """

    interval: float = 30.0
    lasting: float = 600.0
    rest: float = 6_000.0

    def __call__(self, users: int, seconds: float, random: np.random.Generator) -> GeneratedChanges:
        """Return the values. O(n log n) for n changes."""
        middles = levels(users, random)
        begins, of = at_random_times(
            random.gamma(1.0, 1 / self.rest, users), seconds + self.lasting, random
        )
        begins -= self.lasting
        # Exponential durations: a burst under way has the same remaining time as a new one.
        ends = begins + random.exponential(self.lasting, len(begins))
        times, bursts = at_random_times(
            np.full(len(begins), 1 / self.interval), seconds, random, starts=begins
        )
        lies_inside = (times > 0) & (times <= seconds) & (times <= ends[bursts])
        whose = np.concatenate([np.arange(users), of[bursts[lies_inside]]])
        values = middles[whose] + spreads(middles[whose]) * random.standard_normal(len(whose))
        return in_order(np.concatenate([np.zeros(users), times[lies_inside]]), whose, values)
