"""Level and spread of each user's values, common to the kinds of change."""

from __future__ import annotations

import numpy as np

from acquatop.lab.generate.contract import FloatArray


def levels(users: int, random: np.random.Generator) -> FloatArray:
    """Return a level per user: most are low, some several times as high."""
    return random.exponential(30.0, users)


def spreads(middles: FloatArray) -> FloatArray:
    """Return the spreads of values around their levels: wider for higher levels."""
    return 5.0 + 0.5 * middles
