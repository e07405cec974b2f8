"""Pool of a service: the budget, and the values, that all queries of an engine share."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from acquatop.refresh.pool_lane import PoolLane
from replica.shared_facts import SharedFacts
from replica.spending.account import Account
from replica.spending.shared_budget import SharedBudget

OpenAccount = Callable[[SharedBudget], Account]
"""Function that returns one more account that spends of a budget."""


class ServicePool:
    """Values of a service that queries share, and a lane for each stream of theirs.

    Streams are read by threads of their own, so each lane spends for itself, of one budget for all
    windows that close at one time. Replies are known to all lanes. Lanes are opened by one thread
    at a time.
    """

    def __init__(self, budget: SharedBudget) -> None:
        self._budget = budget
        self._facts: dict[Hashable, SharedFacts] = {}
        self._lanes: dict[str, PoolLane] = {}

    def _facts_of(self, question: Hashable) -> SharedFacts:
        """Return the facts about a question."""
        if question not in self._facts:
            used = {asked: each for asked, each in self._facts.items() if len(each)}
            self._facts = {**used, question: SharedFacts()}
        return self._facts[question]

    def lane(self, stream: str, open_account: OpenAccount) -> PoolLane:
        """Return the lane of a stream's queries; a new one if all have left."""
        lane = self._lanes.get(stream)
        if lane is None or not lane.is_used:
            lane = self._lanes[stream] = PoolLane(open_account(self._budget), self._facts_of)
        return lane
