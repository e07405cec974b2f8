"""Refresh of a replica at the close of a window, within the budget of one evaluation."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from acquatop.answer.estimate import Estimate
from acquatop.catalog.services import Service
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.refresh.allocation import Bid
from acquatop.refresh.flow import ReplicaFlow, order_of
from acquatop.refresh.order import ScoredOrder
from acquatop.refresh.pool_lane import PoolLane, fetch_of, pack_lanes, resume_lanes
from acquatop.refresh.proposers import proposer_of
from acquatop.refresh.proposers.contract import Proposed
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.budget import Spending
from replica.clocks import Clock
from replica.maintainer import Maintainer, Refreshed
from replica.rankers import RankerRegistry
from replica.store import JoinedStore

NOTHING_REFRESHED = Refreshed(frozenset(), (), Spending(), 0, None)


@dataclass(frozen=True)
class Wanted:
    """Keys that a query wants from the remote.

    ``unknown`` are keys without any value, the most promising first. ``candidates`` are those of
    the candidates. ``absent`` are keys without a score although they have been asked for.
    """

    unknown: list[str]
    candidates: Proposed
    absent: list[str]


@dataclass(frozen=True)
class Inquiry:
    """Question of a refresh to each ranking: the keys that it wants.

    ``limit`` bounds the keys without a value; 0 asks for nothing. Absent keys are wanted only if
    they were last asked for at ``absent_before`` or earlier. With ``include_dropped``, others of
    the window's best are wanted besides the candidates. ``touches`` says that the replica has a
    capacity, and has to know the keys that open windows need.
    """

    limit: int = 0
    absent_before: float = math.inf
    include_dropped: bool = False
    touches: bool = False


@dataclass(frozen=True)
class RankingNeeds:
    """Answer of one ranking to an :class:`Inquiry`, and the weight of its query."""

    wanted: Wanted
    k: int
    scoring: ReplicaScoring
    query: str = ""
    weight: float = 1.0


class WindowRefresh(Protocol):
    """Refresh of everything that an evaluation joins with."""

    @property
    def looks_at_panes(self) -> bool:
        """True if it must see all solutions of each pane, not only those reduced to the best."""

    def add_pane(self, pane: Pane) -> None:
        """See the solutions of one pane."""

    def begin(self, window: int, closes_ms: int) -> Inquiry:
        """Begin the refresh of a window that closes; return the question to its rankings."""

    def touch(self, keys: Iterable[str]) -> None:
        """Keep the values of keys that open windows need."""

    def fetch(self, window: int, needs: Sequence[RankingNeeds], longest_wait: float) -> Refreshed:
        """Refresh the keys that the window needs most, within the budget."""

    def note_quality(self, expected: Estimate) -> None:
        """Note the quality that the worst answer is expected to have after the refresh."""

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""


class NoRefresh:
    """Refresh of queries without a remote."""

    looks_at_panes = False

    def add_pane(self, pane: Pane) -> None:
        """Do nothing."""

    def begin(self, window: int, closes_ms: int) -> Inquiry:
        """Ask for nothing."""
        return Inquiry()

    def touch(self, keys: Iterable[str]) -> None:
        """Do nothing."""

    def fetch(self, window: int, needs: Sequence[RankingNeeds], longest_wait: float) -> Refreshed:
        """Refresh nothing."""
        return NOTHING_REFRESHED

    def note_quality(self, expected: Estimate) -> None:
        """Do nothing."""

    def snapshot(self) -> dict[str, bytes]:
        """Return no parts."""
        return {}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Do nothing."""


class ReplicaRefresh:
    """Refresh of one service's replica: proposer, ranker, and maintainer with its budget.

    Evaluations with the same ``lane`` share the budget. Without one it is the evaluation's own.
    """

    def __init__(
        self,
        service: Service,
        maintainer: Maintainer[JoinedStore],
        rankers: RankerRegistry,
        random: np.random.Generator,
        *,
        slide_ms: int | None,
        clock: Clock = time.monotonic,
        lane: PoolLane | None = None,
    ) -> None:
        store = maintainer.store
        self._proposer = proposer_of(service.refresh.policy, store)
        order = order_of(ScoredOrder, service, store, rankers, random, slide_ms)
        self._flow = ReplicaFlow(maintainer, order)
        self._clock = clock
        self._lane = lane or PoolLane(maintainer.account)
        self._closes_ms = 0
        self._has_offered = False

    @property
    def looks_at_panes(self) -> bool:
        """True if the proposer must see all solutions of each pane."""
        return self._proposer.looks_at_panes

    def add_pane(self, pane: Pane) -> None:
        """Let the proposer see the solutions of one pane."""
        self._proposer.add_pane(pane)

    def begin(self, window: int, closes_ms: int) -> Inquiry:
        """Begin the refresh of a window that closes; return the question to its rankings."""
        self._closes_ms = closes_ms
        self._flow.begin(closes_ms)
        self._proposer.close_before(window)
        return Inquiry(
            self._flow.most_asked,
            self._flow.absent_before,
            self._proposer.includes_dropped,
            touches=self._flow.evicts,
        )

    def touch(self, keys: Iterable[str]) -> None:
        """Keep the values of keys that open windows need."""
        self._flow.touch(keys)

    def offer(self, window: int, needs: Sequence[RankingNeeds]) -> None:
        """Say what the window needs, to get a part of the budget that all that are due share."""
        own = sum(each.weight for each in needs)
        bids = [self._bid(window, each, self._lane.share(each.weight, own)) for each in needs]
        self._lane.offer(self._closes_ms, self._flow.maintainer, bids)
        self._has_offered = True

    def fetch(self, window: int, needs: Sequence[RankingNeeds], longest_wait: float) -> Refreshed:
        """Refresh the keys that are worth most to this window, and to others due at the time."""
        if not self._has_offered:
            self.offer(window, needs)
        self._has_offered = False
        wanted = [(self._lane, self._flow.maintainer)]
        return fetch_of(wanted, self._clock() + longest_wait)[0]

    def note_quality(self, expected: Estimate) -> None:
        """Note the quality that the worst answer is expected to have after the refresh."""
        self._flow.note_quality(expected)

    def _bid(self, window: int, needs: RankingNeeds, share: float) -> Bid[str]:
        wanted = needs.wanted
        proposed = self._proposer.propose(window, wanted.candidates)
        keys, worths = self._flow.appraised(
            wanted.unknown,
            proposed,
            wanted.absent,
            window=window,
            k=needs.k,
            scoring=needs.scoring,
            share=share,
        )
        return Bid(needs.query, needs.weight, keys, worths.tolist())

    def snapshot(self) -> dict[str, bytes]:
        """Return the replica with its history, the order's random state, the proposer's panes."""
        parts = {**self._flow.snapshot(), "proposer": self._proposer.snapshot()}
        return {"refresher": pack_parts({**parts, **pack_lanes([self._lane])})}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        inner = unpack_parts(parts["refresher"])
        self._flow.resume(inner)
        self._proposer.resume(inner["proposer"])
        resume_lanes([self._lane], inner)
