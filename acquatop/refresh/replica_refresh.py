"""Refresh of a replica at the close of a window, within the budget of one evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Protocol

import numpy as np

from acquatop.catalog.services import Service
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.refresh.order import RefreshOrder
from acquatop.refresh.proposers import proposer_of, ranker_name
from acquatop.refresh.proposers.contract import Proposed
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.budget import Spending
from replica.maintainer import Maintainer, Refreshed
from replica.rankers import RankerRegistry
from replica.store import ReplicaStore

NOTHING_REFRESHED = Refreshed(frozenset(), (), Spending(), 0, None)


@dataclass(frozen=True)
class Wanted:
    """Keys that a query wants from the remote.

    ``unknown`` are keys without any value, the most promising first. ``held`` are those of the
    candidates. ``absent`` are keys without a score although they have been asked for.
    """

    unknown: list[str]
    held: Proposed
    absent: list[str]


class Refreshable(Protocol):
    """Ranking of a query, as far as a refresh needs it."""

    @property
    def k(self) -> int:
        """Number of results wanted, those before the offset included."""

    @property
    def scoring(self) -> ReplicaScoring:
        """Score of solutions."""

    def wanted(
        self, window: int, limit: int, absent_before: float = math.inf, *, beyond_candidates: bool = False
    ) -> Wanted:
        """Return the keys to ask the remote for in a window, all of each kind or ``limit``.

        Absent keys are only those last asked for at ``absent_before`` or earlier. Held are the K+N
        candidates; with ``beyond_candidates`` also others of the window's best that could become
        results, as far as they are known.
        """

    def needed(self) -> Iterable[str]:
        """Return the keys whose values the open windows need, or may need again."""


class Refresh(Protocol):
    """Refresh of everything that an evaluation joins with."""

    @property
    def looks_at_panes(self) -> bool:
        """True if it must see all solutions of each pane, not only those reduced to the best."""

    def add_pane(self, pane: Pane) -> None:
        """See the solutions of one pane."""

    def at(self, window: int, closes_ms: int, rankings: Sequence[Refreshable], longest_wait: float) -> Refreshed:
        """Refresh the keys that a window that closes needs most."""

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""


class NoRefresh:
    """Refresh of queries without a remote."""

    looks_at_panes = False

    def add_pane(self, pane: Pane) -> None:
        """Do nothing."""

    def at(self, window: int, closes_ms: int, rankings: Sequence[Refreshable], longest_wait: float) -> Refreshed:
        """Refresh nothing."""
        return NOTHING_REFRESHED

    def snapshot(self) -> dict[str, bytes]:
        """Return no parts."""
        return {}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Do nothing."""


class ReplicaRefresh:
    """Refresh of one service's replica: proposer, ranker, and maintainer with its budget."""

    def __init__(
        self,
        service: Service,
        maintainer: Maintainer[ReplicaStore],
        rankers: RankerRegistry,
        random: np.random.Generator,
        *,
        slide_ms: int,
    ) -> None:
        refresh = service.refresh
        self._proposer = proposer_of(refresh.policy, maintainer.store)
        self._maintainer = maintainer
        self._order = RefreshOrder(
            maintainer.store,
            rankers[ranker_name(refresh.policy)](),
            slide_ms=slide_ms,
            ask_absent_after=service.ask_absent_after,
            random=random,
        )

    @property
    def looks_at_panes(self) -> bool:
        """True if the proposer must see all solutions of each pane."""
        return self._proposer.looks_at_panes

    def add_pane(self, pane: Pane) -> None:
        """Let the proposer see the solutions of one pane."""
        self._proposer.add_pane(pane)

    def at(self, window: int, closes_ms: int, rankings: Sequence[Refreshable], longest_wait: float) -> Refreshed:
        """Refresh the keys that a window that closes needs most.

        Rankings take turns in naming keys.
        """
        store, maintainer = self._maintainer.store, self._maintainer
        maintainer.begin(closes_ms)
        self._proposer.close_before(window)
        limit = maintainer.budget.items + maintainer.keys_under_way
        orders = [self._keys(ranking, window, limit) for ranking in rankings] if limit else []
        if store.limit is not None:
            for ranking in rankings:
                store.touch(store.rows(list(ranking.needed())))
        return maintainer.fetch(_in_turn(orders), longest_wait)

    def _keys(self, ranking: Refreshable, window: int, limit: int) -> list[str]:
        now = self._maintainer.now()
        beyond = self._proposer.looks_beyond_candidates
        wanted = ranking.wanted(window, limit, self._order.absent_before(now), beyond_candidates=beyond)
        proposed = self._proposer.propose(window, wanted.held)
        return self._order(
            wanted.unknown, proposed, wanted.absent, window=window, k=ranking.k, now=now, scoring=ranking.scoring
        )

    def snapshot(self) -> dict[str, bytes]:
        """Return the replica with its history, the order's random state, the proposer's panes."""
        parts = {
            "maintainer": self._maintainer.snapshot(),
            "order": self._order.snapshot(),
            "proposer": self._proposer.snapshot(),
        }
        return {"refresher": pack_parts(parts)}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        inner = unpack_parts(parts["refresher"])
        self._maintainer.resume(inner["maintainer"])
        self._order.resume(inner["order"])
        self._proposer.resume(inner["proposer"])


def _in_turn(orders: Sequence[list[str]]) -> list[str]:
    """Return keys in the order in which to ask: the first of each list, then the second, each once.

    >>> _in_turn([["a", "b", "c"], ["d", "a"]])
    ['a', 'd', 'b', 'c']
    """
    if len(orders) == 1:
        return orders[0]
    rows = zip_longest(*orders)
    return list(dict.fromkeys(key for row in rows for key in row if key is not None))
