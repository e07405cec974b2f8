"""Never refresh: the baseline that every policy must beat."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, IntArray


class Never:
    """No candidate. O(1)."""

    is_deterministic = True

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return no position."""
        return np.arange(0)
