"""Heavy tails: most values are zero and stay so for long, the others change every minute or so."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import GeneratedChanges, in_order

_MINUTE = 60.0


@dataclass(frozen=True)
class Tails:
    """Whole values around heavy-tailed levels, redrawn in a minute with a chance by what they are.

    A zero is redrawn with the chance ``waking``, any other value with ``changing``: what is quiet
    stays quiet, what moves keeps moving. Values of one level scatter as counts of bursts do
    (negative binomial), so zeros are many at low levels and some at all.
    """

    waking: float = 0.04
    changing: float = 0.6
    tail: float = 1.6

    def __call__(self, users: int, seconds: float, random: np.random.Generator) -> GeneratedChanges:
        """Return the values. O(users · minutes)."""
        levels = 2.0 * random.lognormal(0.0, self.tail, users)
        minutes = 1 + int(seconds / _MINUTE)
        present = random.poisson(levels * random.gamma(1.0, 1.0, users))
        times, whose = [np.zeros(users)], [np.arange(users)]
        values = [present.astype(np.float64)]
        for minute in range(minutes):
            chances = np.where(present == 0, self.waking, self.changing)
            at = np.flatnonzero(random.random(users) < chances)
            drawn = random.poisson(levels[at] * random.gamma(1.0, 1.0, len(at)))
            moved = drawn != present[at]
            at, drawn = at[moved], drawn[moved]
            present[at] = drawn
            times.append(_MINUTE * (minute + random.uniform(0.01, 1.0, len(at))))
            whose.append(at)
            values.append(drawn.astype(np.float64))
        all_times = np.concatenate(times)
        inside = all_times <= seconds
        return in_order(
            all_times[inside], np.concatenate(whose)[inside], np.concatenate(values)[inside]
        )
