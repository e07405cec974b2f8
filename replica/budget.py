"""Budget and spending of one evaluation on the remote."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Hard limits of one evaluation: items asked for, requests sent, seconds waited."""

    items: int
    requests: int
    seconds: float

    def __add__(self, other: Budget) -> Budget:
        return Budget(
            self.items + other.items, self.requests + other.requests, self.seconds + other.seconds
        )


NOTHING = Budget(0, 0, 0.0)
"""Budget that allows nothing."""


@dataclass(frozen=True)
class Spending:
    """Spending of an evaluation: items asked for, requests sent and failed, seconds waited."""

    items: int = 0
    requests: int = 0
    seconds: float = 0.0
    failed: int = 0
    shared_by: int = 1
    """Number of answers that report it: it was spent once for all of them."""

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.items + other.items,
            self.requests + other.requests,
            self.seconds + other.seconds,
            self.failed + other.failed,
            max(self.shared_by, other.shared_by),
        )
