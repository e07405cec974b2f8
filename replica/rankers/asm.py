"""All selection: no policy; with a budget for all candidates, the best that refreshing can do."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, IntArray


class AllSelection:
    """All candidates, best score first. O(n)."""

    is_deterministic = True

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions, in their order."""
        return np.arange(len(candidates))
