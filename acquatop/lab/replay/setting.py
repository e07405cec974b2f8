"""Setting: the values that vary between replays of one recording."""

from __future__ import annotations

from dataclasses import dataclass, replace

from acquatop.catalog.services import Service
from acquatop.plugins import RANKERS
from replica.budget import Budget

_ALL = 1 << 40
"""More items than any remote has."""

UNLIMITED = ("ASM",)
"""Rankers without a budget: they show the effect of refreshing everything that is proposed."""


CLAIRVOYANT = "clairvoyant"
"""Yardstick that can be named in place of a policy: it knows in advance what will come."""


def can_win(policy: str) -> bool:
    """Return true for policies, false for what shows how much better they could be."""
    return policy != CLAIRVOYANT and policy.partition("-")[2] not in UNLIMITED


@dataclass(frozen=True, order=True)
class Setting:
    """A policy, the items that one evaluation may request, K, N, and the random seed.

    If an experiment generates its data, the seed also selects the data set.
    """

    policy: str
    budget: int
    k: int
    n: int
    seed: int

    @property
    def is_plain(self) -> bool:
        """True if it models an engine without policies: all join partners are fetched and kept."""
        return self.policy == "WSJ-ASM"

    @property
    def is_deterministic(self) -> bool:
        """True if no random numbers are drawn, so that all seeds give the same answers."""
        ranker = RANKERS.get(self.policy.partition("-")[2])
        return bool(getattr(ranker, "is_deterministic", False))

    @property
    def is_unlimited(self) -> bool:
        """True if the policy requests everything that it proposes, whatever the budget."""
        return self.policy.partition("-")[2] in UNLIMITED


def with_setting(service: Service, setting: Setting) -> Service:
    """Return a service with a setting. As many requests may be sent as its items need."""
    refresh, budget = service.refresh, budget_of(service, setting)
    refill = refresh.refill or setting.is_plain
    refresh = replace(
        refresh, policy=setting.policy, n=setting.n, chooses_n=False, budget=budget, refill=refill
    )
    return replace(service, refresh=refresh)


def budget_of(service: Service, setting: Setting) -> Budget:
    """Return the budget of one evaluation in a setting."""
    items, given = _ALL if setting.is_unlimited else setting.budget, service.refresh.budget
    needed = items if given.requests >= given.items else -(-items // service.block_size)
    return Budget(items, max(given.requests, needed), given.seconds)
