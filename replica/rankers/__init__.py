"""Rankers: orders in which to refresh candidates. One class per file, found by name."""

from __future__ import annotations

from replica.rankers.contract import Candidates, Ranker, RankerError, ranked
from replica.rankers.registry import DEFAULT_RANKERS, RankerClass, RankerRegistry
from replica.rankers.wbm import known_intervals

__all__ = [
    "DEFAULT_RANKERS",
    "Candidates",
    "Ranker",
    "RankerClass",
    "RankerError",
    "RankerRegistry",
    "known_intervals",
    "ranked",
]
