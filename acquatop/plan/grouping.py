"""Which queries are answered from one structure together, and which by themselves."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from typing import TypeGuard

from acquatop.catalog.vocabulary import Strategy
from acquatop.plan.bind import Bound, BoundQuery
from acquatop.plan.strategy import Choice, Workload, choose
from acquatop.topk.shared.contract import Asked

_MANY = 1_000
"""Of how many queries it is said that they would share a structure, at most."""


def can_share(bound: Bound) -> TypeGuard[BoundQuery]:
    """Say whether a query can be answered together with others that have other windows: its scores never change."""
    return (
        isinstance(bound, BoundQuery)
        and bound.plan.aggregate is None
        and bound.service is None
        and bound.stream.arrivals == "distinct"
    )


def choice_among(bound: BoundQuery, others: Iterable[BoundQuery] = ()) -> Choice:
    """Return how a query that can share is answered best, beside others that rank the same by the same.

    How many records come in the windows' time is not known beforehand: it is as if one came in each millisecond.
    """
    asked = tuple(Asked(each.windows, each.plan.k + each.plan.offset) for each in (bound, *others))
    return choose(Workload(asked), available=(Strategy.EACH, Strategy.SHARED), hint=bound.stream.strategy)


def fewest_that_share(bound: BoundQuery) -> int | None:
    """Return how many queries like one it takes for them to share a structure; None if a thousand do not.

    O(log n) choices.
    """
    counts = range(1, _MANY + 1)

    def shares(count: int) -> bool:
        return choice_among(bound, [bound] * (count - 1)).is_shared

    at = bisect_left(counts, True, key=shares)
    return counts[at] if at < len(counts) else None
