"""Random order: the baseline for any policy that uses knowledge."""

from __future__ import annotations

from replica.rankers.contract import Candidates, IntArray


class RandomOrder:
    """All candidates in random order. O(n)."""

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        return candidates.random.permutation(len(candidates))
