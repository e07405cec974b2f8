"""Where each user's values lie: what the kinds of change have in common."""

from __future__ import annotations

import numpy as np

from acquatop.lab.generate.contract import FloatArray


def levels(users: int, random: np.random.Generator) -> FloatArray:
    """Return a level per user: most are low, some several times as high."""
    return random.exponential(30.0, users)


def spreads(middles: FloatArray) -> FloatArray:
    """Return how widely values are spread around their levels: the higher the wider."""
    return 5.0 + 0.5 * middles
