"""Registry of rankers: the names that a refresh policy may use, extensible by user-defined ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from replica.rankers.asm import AllSelection
from replica.rankers.bsm import BorderSelection
from replica.rankers.contract import Ranker
from replica.rankers.imp import ExpectedImpact
from replica.rankers.lru import LeastRecentlyRefreshed
from replica.rankers.rnd import RandomOrder
from replica.rankers.tsm import TopSelection
from replica.rankers.wbm import WindowBasedMaintenance
from replica.rankers.wst import Never

RankerClass = Callable[[], Ranker]
"""Factory of a query's ranker."""


class RankerRegistry(Mapping[str, RankerClass]):
    """Immutable mapping of names to ranker classes; extended by making another one.

    >>> class Backwards:
    ...     def __call__(self, candidates):
    ...         return np.arange(len(candidates))[::-1]
    >>> import numpy as np
    >>> sorted(set(DEFAULT_RANKERS.with_ranker("BACKWARDS", Backwards)) - set(DEFAULT_RANKERS))
    ['BACKWARDS']
    """

    def __init__(self, rankers: Mapping[str, RankerClass]) -> None:
        self._rankers = MappingProxyType(dict(rankers))

    def __getitem__(self, name: str) -> RankerClass:
        return self._rankers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rankers)

    def __len__(self) -> int:
        return len(self._rankers)

    def with_ranker(self, name: str, ranker: RankerClass) -> RankerRegistry:
        """Return a registry with one more ranker; replaces a ranker of the same name.

        A name consists of capital letters, digits and ``-``.
        """
        if not re.fullmatch(r"[A-Z0-9-]+", name):
            raise ValueError(
                f"{name!r} is no name for a ranker: it consists of capital letters, digits and '-'"
            )
        if not isinstance(ranker, type) or "__call__" not in dir(ranker):
            raise ValueError(
                f"ranker {name} must be a class whose objects can be called with candidates"
            )
        return RankerRegistry({**self._rankers, name: ranker})


DEFAULT_RANKERS = RankerRegistry(
    {
        "WST": Never,
        "RND": RandomOrder,
        "LRU": LeastRecentlyRefreshed,
        "WBM": WindowBasedMaintenance,
        "TSM": TopSelection,
        "BSM": BorderSelection,
        "ASM": AllSelection,
        "IMP": ExpectedImpact,
    }
)
"""Rankers of the papers, by the names used there, and ``IMP``, which is new."""
