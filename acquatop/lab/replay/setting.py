"""What is varied between replays of one recording."""

from __future__ import annotations

from dataclasses import dataclass

UNLIMITED = ("ASM",)
"""Rankers that are not held to a budget: they show what refreshing all that is proposed would do."""


@dataclass(frozen=True, order=True)
class Setting:
    """A policy, the items that one evaluation may ask for, K, N, and the seed of chance.

    Where an experiment generates its data, the seed says which of the data sets it is, too.
    """

    policy: str
    budget: int
    k: int
    n: int
    seed: int

    @property
    def is_plain(self) -> bool:
        """Whether it stands for an engine without policies: all that the window joins with is fetched, and kept."""
        return self.policy == "WSJ-ASM"

    @property
    def is_unlimited(self) -> bool:
        """Whether the policy asks for all that it proposes, whatever the budget."""
        return self.policy.partition("-")[2] in UNLIMITED
