"""Stream of mentions of users who come, are away for long, and return."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import GeneratedMentions, at_random_times


@dataclass(frozen=True)
class Returning:
    """Mentions every ``interval`` seconds in visits of ``lasting`` seconds, ``away`` seconds apart.

    All are means. So most values in a replica are of users who are away, and are old when they
    return.
    """

    interval: float = 70.0
    lasting: float = 300.0
    away: float = 3_000.0

    def __call__(
        self, users: int, seconds: float, random: np.random.Generator
    ) -> GeneratedMentions:
        """Return mentions of so many users within so many seconds. O(n log n)."""
        whole = seconds + self.lasting
        begins, of = at_random_times(np.full(users, 1 / self.away), whole, random)
        begins -= self.lasting
        lasting = random.exponential(self.lasting, len(begins))
        times, visits = at_random_times(
            np.full(len(begins), 1 / self.interval), whole, random, starts=begins
        )
        inside = (times > 0) & (times <= seconds) & (times <= (begins + lasting)[visits])
        times_ms = np.ceil(1000 * times[inside]).astype(np.int64)
        order = np.argsort(times_ms, kind="stable")
        return GeneratedMentions(
            times_ms[order], of[visits[inside]][order], np.ones(len(order), dtype=np.int64)
        )
