"""Border selection: refresh around the border between reported and unreported candidates.

Items there are the likeliest to move in or out, so this improves the membership of the results more
than their order.
"""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, IntArray


class BorderSelection:
    """All candidates, nearest to the border first; reported ones win ties. O(n log n)."""

    is_deterministic = True

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        positions = np.arange(len(candidates))
        return np.argsort(np.abs(positions - (candidates.k - 0.5)), kind="stable")
