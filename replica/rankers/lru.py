"""Least recently refreshed first, so that every candidate has its turn."""

from __future__ import annotations

from replica.rankers.contract import Candidates, IntArray
from replica.rankers.ordering import ascending


class LeastRecentlyRefreshed:
    """All candidates, longest not fetched first; the better scored wins ties. O(n log n)."""

    is_deterministic = True

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        return ascending(candidates.fetched_at)
