"""Least recently refreshed first, so that every candidate has its turn."""

from __future__ import annotations

import numpy as np

from replica.rankers.contract import Candidates, IntArray


def least_recently_refreshed(candidates: Candidates) -> IntArray:
    """Return all positions, longest not fetched first, the better scored of two fetched together. O(n log n)."""
    return np.argsort(candidates.fetched_at, kind="stable")
