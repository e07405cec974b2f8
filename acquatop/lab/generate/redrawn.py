"""Values redrawn with noise: the AcquaTop paper's data sets DS-CH-5 to DS-CH-80."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from acquatop.lab.generate.contract import GeneratedChanges, in_order
from acquatop.lab.generate.levels import levels, spreads

_MINUTE = 60.0
_CALL = 100
_OF_A_HUNDRED = 84.0
"""Number of a call's hundred values that would change if none were held."""


@dataclass(frozen=True)
class Redrawn:
    """Values redrawn around the user's level every minute, or held, in calls of 100 users.

    ``changes`` is the approximate number of changed values per hundred (the paper's CH, from 5 to
    80): a value is held with probability 1 - changes/84.
    """

    changes: float = 20.0

    def __post_init__(self) -> None:
        if not 0 <= self.changes <= _OF_A_HUNDRED:
            raise ValueError(
                f"of a call's 100 values from 0 to {_OF_A_HUNDRED:g} change, not {self.changes:g}"
            )

    def __call__(self, users: int, seconds: float, random: np.random.Generator) -> GeneratedChanges:
        """Return the values. O(users · minutes)."""
        minutes = 1 + int(seconds / _MINUTE)
        calls = -(-users // _CALL)
        offsets = _MINUTE / calls * (np.arange(users) // _CALL)
        middles = levels(users, random)
        values = middles + spreads(middles) * random.standard_normal((minutes, users))
        is_new = random.random((minutes, users)) < self.changes / _OF_A_HUNDRED
        is_new[0] = True
        minute, user = np.nonzero(is_new)
        times = np.where(minute == 0, 0.0, _MINUTE * minute + offsets[user])
        lies_inside = times <= seconds
        return in_order(times[lies_inside], user[lies_inside], values[is_new][lies_inside])
