"""Strategies that a catalog may name: one line for each structure of the core.

Light to import: a structure is loaded when a query is kept by it. Other distributions add theirs
(:data:`acquatop.plugins.STRATEGIES`).
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


class Family(enum.StrEnum):
    """Structures that keep one contract, so that any of them can take the place of another."""

    LIST = "list"
    """Candidates of one query, pane by pane: ``topk/contract.py``."""
    SHARED = "shared"
    """Candidates of all queries together: ``topk/shared/contract.py``."""
    ELEMENTS = "elements"
    """Best of the last n elements, after each of them: ``topk/sliding/contract.py``."""
    NEAREST = "nearest"
    """Nearest points to each of many queries: ``topk/sliding/nearest.py``."""


@dataclass(frozen=True)
class TopKStrategy:
    """Structure that keeps the candidates of top-k queries, by the name that a catalog uses.

    ``structure`` is called to make one, or names what is called, as ``module:name``. Of the family
    ``LIST`` it is called with ``(k, scoring)``, or, if ``scores_change``, with ``(k, n, scoring)``
    and the keywords ``distinct`` and ``fixed``. Of the family ``ELEMENTS`` it is called with
    ``(k, n)``, of ``NEAREST`` with ``(dimensions, n)`` and the keyword ``is_root``.
    """

    name: str
    family: Family
    structure: str | Callable[..., Any]
    scores_change: bool = False
    """True if merits may change, and rows may be removed, while they are held."""

    errs: bool = False
    """True if answers may miss a result by chance: it is also given the error that is accepted, a
    share of the answers, and the number of events per answer."""

    def load(self) -> Callable[..., Any]:
        """Import and return what makes the structure."""
        if not isinstance(self.structure, str):
            return self.structure
        module, _, name = self.structure.partition(":")
        found: Callable[..., Any] = getattr(importlib.import_module(module), name)
        return found


_PAPERS = "acquatop.topk.papers"

OWN = {
    each.name: each
    for each in (
        TopKStrategy(
            "pane-dominance", Family.LIST, "acquatop.topk.pane_dominance:PaneDominance", True
        ),
        TopKStrategy(
            "super-mtkn-list", Family.LIST, f"{_PAPERS}.mintopk.super_mtkn:SuperMTKN", True
        ),
        TopKStrategy("mintopk-list", Family.LIST, f"{_PAPERS}.mintopk.mintopk:MinTopk"),
        TopKStrategy("pretopk", Family.LIST, f"{_PAPERS}.mintopk.pretopk:PreTopk"),
        TopKStrategy(
            "shared-skyline", Family.SHARED, "acquatop.topk.shared.shared_skyline:SharedSkyline"
        ),
        TopKStrategy("mtopband", Family.SHARED, f"{_PAPERS}.mtops.mtop_band:MTopBand"),
        TopKStrategy("mtoplist", Family.SHARED, f"{_PAPERS}.mtops.mtop_list:MTopList"),
        TopKStrategy(
            "block-skyline", Family.ELEMENTS, "acquatop.topk.sliding.block_skyline:BlockSkyline"
        ),
        TopKStrategy(
            "nearest-grid", Family.NEAREST, "acquatop.topk.sliding.nearest:NearestQueries"
        ),
        TopKStrategy("SA", Family.ELEMENTS, f"{_PAPERS}.sliding.algorithms:sa"),
        TopKStrategy("RA", Family.ELEMENTS, f"{_PAPERS}.sliding.algorithms:ra"),
        TopKStrategy("PA", Family.ELEMENTS, f"{_PAPERS}.sliding.hybrid:guarded", errs=True),
        TopKStrategy("SASF", Family.ELEMENTS, f"{_PAPERS}.sliding.algorithms:sasf"),
        TopKStrategy("SARF", Family.ELEMENTS, f"{_PAPERS}.sliding.algorithms:sarf"),
        TopKStrategy("SAPF", Family.ELEMENTS, f"{_PAPERS}.sliding.algorithms:sapf"),
        TopKStrategy("RASF", Family.ELEMENTS, f"{_PAPERS}.sliding.algorithms:rasf"),
        TopKStrategy("RARF", Family.ELEMENTS, f"{_PAPERS}.sliding.algorithms:rarf"),
        TopKStrategy("RAPF", Family.ELEMENTS, f"{_PAPERS}.sliding.algorithms:rapf"),
    )
}
"""The project's own, by name."""


def checked_strategy(name: str, found: object) -> TopKStrategy:
    """Return what a distribution brings if it is a strategy of that name; else ``ValueError``.

    >>> checked_strategy("mine", 3)
    Traceback (most recent call last):
    ValueError: 3 is no acquatop.topk.strategies.TopKStrategy named "mine"
    """
    if not isinstance(found, TopKStrategy) or found.name != name:
        raise ValueError(f'{found!r} is no acquatop.topk.strategies.TopKStrategy named "{name}"')
    if found.family in (Family.SHARED, Family.NEAREST):
        raise ValueError("structures for several queries together cannot be brought")
    found.load()
    return found
