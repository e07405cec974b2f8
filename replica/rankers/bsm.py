"""Border selection: refresh around the border between what is reported and what is not.

Items there are the likeliest to move in or out, so this serves the results' membership more
than their order.
"""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, IntArray


class BorderSelection:
    """All candidates, nearest to the border first, the reported one of two equally near. O(n log n)."""

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        positions = np.arange(len(candidates))
        return np.argsort(np.abs(positions - (candidates.k - 0.5)), kind="stable")
