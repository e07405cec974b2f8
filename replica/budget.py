"""Budget and spending of one evaluation on the remote."""

from __future__ import annotations

from dataclasses import dataclass, replace


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
class SpendingPart:
    """Part of what several answers report, that is one's own if each has an equal one."""

    items: float
    requests: float
    seconds: float
    failed: float


NO_PART = SpendingPart(0.0, 0.0, 0.0, 0.0)
"""Part of an answer for which nothing was spent."""


@dataclass(frozen=True)
class Spending:
    """Spending of an evaluation: items asked for, requests sent and failed, seconds waited."""

    items: int = 0
    requests: int = 0
    seconds: float = 0.0
    failed: int = 0
    shared_by: int = 1
    """Most answers that report something of it: it was spent once for all of them."""
    part: SpendingPart | None = None
    """Part of each of these answers; None if all of it is one's own."""

    @property
    def own(self) -> SpendingPart:
        """Part that is one's own: those of all answers are what was spent."""
        whole = SpendingPart(self.items, self.requests, self.seconds, self.failed)
        return self.part or whole

    def for_answers(self, count: int) -> Spending:
        """Return it as spent for so many answers together.

        >>> Spending(items=6, requests=3).for_answers(3).own.items
        2.0
        """
        if count < 2:
            return self
        parts = (each / count for each in (self.items, self.requests, self.seconds, self.failed))
        return replace(self, shared_by=count, part=SpendingPart(*parts))

    def __add__(self, other: Spending) -> Spending:
        return Spending(
            self.items + other.items,
            self.requests + other.requests,
            self.seconds + other.seconds,
            self.failed + other.failed,
            max(self.shared_by, other.shared_by),
            self._parts_with(other),
        )

    def _parts_with(self, other: Spending) -> SpendingPart | None:
        if self.part is None and other.part is None:
            return None
        mine, others = self.own, other.own
        return SpendingPart(
            mine.items + others.items,
            mine.requests + others.requests,
            mine.seconds + others.seconds,
            mine.failed + others.failed,
        )
