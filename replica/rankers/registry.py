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
    """Mapping of names to ranker classes; extended by making another one with ``more``.

    >>> class Backwards:
    ...     def __call__(self, candidates):
    ...         return np.arange(len(candidates))[::-1]
    >>> import numpy as np
    >>> sorted(set(DEFAULT_RANKERS.with_ranker("BACKWARDS", Backwards)) - set(DEFAULT_RANKERS))
    ['BACKWARDS']
    """

    def __init__(
        self, rankers: Mapping[str, RankerClass], more: Mapping[str, RankerClass] | None = None
    ) -> None:
        self._rankers = rankers
        self._more: Mapping[str, RankerClass] = MappingProxyType(dict(more or {}))

    def __getitem__(self, name: str) -> RankerClass:
        return self._more[name] if name in self._more else self._rankers[name]

    def __contains__(self, name: object) -> bool:
        return name in self._more or name in self._rankers

    def __iter__(self) -> Iterator[str]:
        yield from self._rankers
        yield from (name for name in self._more if name not in self._rankers)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def with_ranker(self, name: str, ranker: RankerClass) -> RankerRegistry:
        """Return a registry with one more ranker; replaces a ranker of the same name.

        A name consists of capital letters, digits and ``-``.
        """
        more = {**self._more, name: checked_ranker(name, ranker)}
        return RankerRegistry(self._rankers, more)


def checked_ranker(name: str, ranker: object) -> RankerClass:
    """Return a ranker's class; raise :class:`ValueError` if it, or its name, cannot be one."""
    if not re.fullmatch(r"[A-Z0-9-]+", name):
        raise ValueError(
            f"{name!r} is no name for a ranker: it consists of capital letters, digits and '-'"
        )
    if not isinstance(ranker, type) or "__call__" not in dir(ranker):
        raise ValueError(
            f"ranker {name} must be a class whose objects can be called with candidates"
        )
    return ranker


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
