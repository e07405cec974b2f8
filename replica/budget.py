"""What one evaluation may spend on the remote, and what it spent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """The hard limits of one evaluation: items asked for, requests sent, seconds waited."""

    items: int
    requests: int
    seconds: float

    def less(self, spent: Spending, under_way: int = 0) -> Budget:
        """Return what is left when others have spent, and have some requests still under way.

        >>> Budget(items=5, requests=3, seconds=1.0).less(Spending(items=2, requests=1, seconds=0.25), under_way=1)
        Budget(items=3, requests=1, seconds=0.75)
        """
        return Budget(
            items=max(0, self.items - spent.items),
            requests=max(0, self.requests - spent.requests - under_way),
            seconds=max(0.0, self.seconds - spent.seconds),
        )

    def __add__(self, other: Budget) -> Budget:
        return Budget(self.items + other.items, self.requests + other.requests, self.seconds + other.seconds)

    def blocks(self, keys: list[str], block_size: int, free_requests: int) -> list[list[str]]:
        """Return the first keys that the budget allows, in as few blocks as it takes; none where nothing is left.

        >>> Budget(items=5, requests=2, seconds=1).blocks(["a", "b", "c", "d"], 3, free_requests=2)
        [['a', 'b', 'c'], ['d']]
        >>> Budget(items=2, requests=2, seconds=1).blocks(["a", "b", "c", "d"], 3, free_requests=1)
        [['a', 'b']]
        >>> Budget(items=2, requests=2, seconds=1).blocks(["a", "b", "c", "d"], 3, free_requests=-1)
        []
        """
        # What is left may be less than nothing where several share a budget, and would count from the end.
        allowed = keys[: max(0, min(self.items, block_size * min(self.requests, free_requests)))]
        return [allowed[start : start + block_size] for start in range(0, len(allowed), block_size)]


@dataclass(frozen=True)
class Spending:
    """What an evaluation spent: items asked for, requests sent, seconds waited, requests failed."""

    items: int = 0
    requests: int = 0
    seconds: float = 0.0
    failed: int = 0

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.items + other.items,
            self.requests + other.requests,
            self.seconds + other.seconds,
            self.failed + other.failed,
        )
