"""What one evaluation may spend on the remote, and what it spent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """The hard limits of one evaluation: items asked for, requests sent, seconds waited."""

    items: int
    requests: int
    seconds: float

    def blocks(self, keys: list[str], block_size: int, free_requests: int) -> list[list[str]]:
        """Return the first keys that the budget allows, in as few blocks as it takes.

        >>> Budget(items=5, requests=2, seconds=1).blocks(["a", "b", "c", "d"], 3, free_requests=2)
        [['a', 'b', 'c'], ['d']]
        >>> Budget(items=2, requests=2, seconds=1).blocks(["a", "b", "c", "d"], 3, free_requests=1)
        [['a', 'b']]
        """
        allowed = keys[: min(self.items, block_size * min(self.requests, free_requests))]
        return [allowed[start : start + block_size] for start in range(0, len(allowed), block_size)]


@dataclass(frozen=True)
class Spending:
    """What an evaluation spent: items asked for, requests sent, seconds waited, requests failed."""

    items: int = 0
    requests: int = 0
    seconds: float = 0.0
    failed: int = 0
