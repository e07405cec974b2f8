"""Random order: what a policy gains by knowing anything at all is measured against it."""

from __future__ import annotations

from replica.rankers.contract import Candidates, IntArray


class RandomOrder:
    """All candidates in an order that chance decides, each once. O(n)."""

    def __call__(self, candidates: Candidates) -> IntArray:
        """Return all positions."""
        return candidates.random.permutation(len(candidates))
