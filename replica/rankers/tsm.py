"""Top selection: refresh from the top of the list down, for the best order of the results."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, IntArray


class TopSelection:
    """All candidates, best score first. O(n)."""

    is_deterministic = True

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions, in their order."""
        return np.arange(len(candidates))
