"""Never refresh: the baseline that every policy must beat."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, IntArray


def never(candidates: Candidates) -> IntArray:
    """Return no position at all."""
    return np.arange(0)
