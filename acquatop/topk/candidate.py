"""What top-k structures hold, and the one total order in which they hold it."""

from __future__ import annotations

from dataclasses import dataclass, field

Rank = tuple[float, int, str]
"""Sorts the best candidate first: the higher merit, then the newer, then the smaller identity."""


def best_rank(merit: float) -> Rank:
    """Return the best rank that anything of a merit can have.

    >>> best_rank(2.0) < Candidate("a", "a", time_ms=10**15, merit=2.0, first=0, last=0).rank
    True
    """
    return (-merit, -(2**63), "")


@dataclass(slots=True, eq=False)
class Candidate:
    """A solution of the stream's pattern that can still reach an answer.

    ``merit`` is the score, or its negative where the smallest scores are wanted. ``first`` and
    ``last`` are the windows it lies in, ``numbers`` the scoring variables' values on the stream's
    side, ``terms`` the N-Triples terms of all the stream's variables.
    """

    identity: str
    key: str
    time_ms: int
    merit: float
    first: int
    last: int
    numbers: tuple[float, ...] = ()
    terms: tuple[str, ...] = ()
    rank: Rank = field(init=False)

    def __post_init__(self) -> None:
        self.set_merit(self.merit)

    def set_merit(self, merit: float) -> None:
        """Change the merit. Not while the candidate stands in a sorted structure."""
        self.merit = merit
        self.rank = (-merit, -self.time_ms, self.identity)

    def covers(self, window: int) -> bool:
        """Say whether the candidate lies in a window."""
        return self.first <= window <= self.last


@dataclass(slots=True)
class Dropped:
    """What is remembered of a window's candidates that are no longer held: enough to know what they could do."""

    best: Rank
    lows: tuple[float, ...]
    highs: tuple[float, ...]

    def add(self, rank: Rank, lows: tuple[float, ...], highs: tuple[float, ...]) -> None:
        """Remember more of them."""
        self.best = min(self.best, rank)
        self.lows = tuple(map(min, self.lows, lows))
        self.highs = tuple(map(max, self.highs, highs))
