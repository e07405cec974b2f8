"""Refresh of several replicas that are joined: each with its own policy, budget and breaker."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from acquatop.answer.estimate import Estimate
from acquatop.catalog.graphs import StaticGraph
from acquatop.catalog.services import Service
from acquatop.ingest.panes import Pane
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.refresh.allocation import Bid
from acquatop.refresh.flow import ReplicaFlow, order_of
from acquatop.refresh.joined_view import JoinedView
from acquatop.refresh.order import RefreshOrder
from acquatop.refresh.pool_lane import PoolLane, fetch_of, lanes_of, pack_lanes, resume_lanes
from acquatop.refresh.proposers import proposer_of
from acquatop.refresh.proposers.contract import Proposed
from acquatop.refresh.replica_refresh import Inquiry, RankingNeeds
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.budget import Budget, Spending
from replica.clocks import Clock
from replica.freshness.change_model import ChangeModel
from replica.maintainer import Maintainer, Refreshed
from replica.rankers import RankerRegistry
from replica.rankers.contract import Outlook
from replica.store import SolutionStore
from rspql.plan import Join

_PAST = "past"
"""Name of the past values' part in snapshots."""


class JoinedReplicas:
    """Replicas of several services, and the view of what they know together with static graphs."""

    def __init__(
        self,
        join: Join,
        services: Sequence[Service],
        maintainers: Sequence[Maintainer[SolutionStore]],
        graphs: Sequence[StaticGraph] = (),
    ) -> None:
        self.join = join
        self.services = services
        self.maintainers = maintainers
        self.store = JoinedView(join, [each.store for each in maintainers], graphs)
        self.store.load()

    @property
    def budget(self) -> Budget:
        """Budget of one evaluation for all services together."""
        accounts = {id(each.account): each.budget for each in self.maintainers}
        return sum(accounts.values(), Budget(0, 0, 0.0))

    def now(self) -> float:
        """Return the time by which values are dated."""
        return max(each.now() for each in self.maintainers)

    def close(self) -> None:
        """Close the feeds."""
        for each in self.maintainers:
            each.close()


class _PartOrder(RefreshOrder[SolutionStore]):
    """Order of one service's keys, by what the tuples that depend on them could be worth."""

    view: JoinedView
    tuples: Sequence[str] = ()
    """Best tuple that depends on each proposed key."""

    def _outlook(
        self,
        proposed: Proposed,
        kept: IntArray,
        rows: IntArray,
        now: float,
        scoring: ReplicaScoring | None,
    ) -> Outlook:
        held = self.view.rows([self.tuples[at] for at in kept.tolist()])
        model = ChangeModel(self.view.history)
        return self._possible(self.view, model, proposed, kept, held, now, scoring)


class JoinRefresh:
    """Refresh of replicas that are joined. A service asked by another's answers is asked after it.

    The others are asked at the same time. Those asked later have what is left of the evaluation's
    time. Each service's budget is that of its lane, in ``lanes`` by IRI; without one it is the
    evaluation's own.
    """

    def __init__(
        self,
        replicas: JoinedReplicas,
        rankers: RankerRegistry,
        random: np.random.Generator,
        *,
        slide_ms: int | None,
        clock: Clock = time.monotonic,
        lanes: Mapping[str, PoolLane] = {},
    ) -> None:
        self._replicas = replicas
        self._lanes = lanes_of(
            [each.iri for each in replicas.services], replicas.maintainers, lanes
        )
        self._view = replicas.store
        self._clock = clock
        self._flows: list[ReplicaFlow[SolutionStore]] = []
        self._orders: list[_PartOrder] = []
        for service, maintainer in zip(replicas.services, replicas.maintainers, strict=True):
            order = order_of(_PartOrder, service, maintainer.store, rankers, random, slide_ms)
            order.view = self._view
            self._orders.append(order)
            self._flows.append(ReplicaFlow(maintainer, order))
        self._proposers = [
            proposer_of(each.refresh.policy, self._view) for each in replicas.services
        ]
        self._depths = _depths(replicas.join)
        self._evicts = False
        self._closes_ms = 0
        self._offered: frozenset[int] = frozenset()
        """Parts that have made offers for the window that closes."""

    @property
    def looks_at_panes(self) -> bool:
        """True if a proposer must see all solutions of each pane."""
        return any(each.looks_at_panes for each in self._proposers)

    def add_pane(self, pane: Pane) -> None:
        """Let the proposers see the solutions of one pane."""
        for each in self._proposers:
            each.add_pane(pane)

    def begin(self, window: int, closes_ms: int) -> Inquiry:
        """Begin the refresh of a window that closes; return the question to its rankings."""
        self._closes_ms, self._offered = closes_ms, frozenset()
        for flow, proposer in zip(self._flows, self._proposers, strict=True):
            flow.begin(closes_ms)
            proposer.close_before(window)
        most = self._view.limit
        self._evicts = most is not None and self._view.held > most
        # Even if nothing may be asked, what was unknown may have become known by feeds.
        return Inquiry(
            max(1, sum(flow.most_asked for flow in self._flows)),
            max(flow.absent_before for flow in self._flows),
            any(each.includes_dropped for each in self._proposers),
            touches=self._evicts or any(flow.evicts for flow in self._flows),
        )

    def touch(self, keys: Iterable[str]) -> None:
        """Keep the results of tuples that open windows need, and what they depend on."""
        self._view.touch_needs(keys)

    def offer(self, window: int, needs: Sequence[RankingNeeds]) -> None:
        """Say what the window needs of the services that are asked first, and that more follows."""
        if self._evicts:
            self._view.evict()
        for at, depth in enumerate(self._depths):
            if depth:
                for each in needs:
                    self._lanes[at].announce(self._closes_ms, each.query, each.weight)
        self._offer_parts([at for at, depth in enumerate(self._depths) if not depth], window, needs)

    def fetch(self, window: int, needs: Sequence[RankingNeeds], longest_wait: float) -> Refreshed:
        """Refresh the keys that are worth most to this window, and to others due at the time."""
        started = self._clock()
        if not self._offered:
            self.offer(window, needs)
        refreshed: list[Refreshed | None] = [None] * len(self._flows)
        spent = Spending()
        parts = sorted(range(len(self._flows)), key=self._depths.__getitem__)
        for _, level in groupby(parts, key=self._depths.__getitem__):
            several = list(level)
            self._offer_parts([at for at in several if at not in self._offered], window, needs)
            wanted = [(self._lanes[at], self._flows[at].maintainer) for at in several]
            found = fetch_of(wanted, started + longest_wait)
            for at, each in zip(several, found, strict=True):
                refreshed[at] = each
            # All parts of one lane report what was spent for all.
            by_lane = {id(lane): each for (lane, _), each in zip(wanted, found, strict=True)}
            spent = sum((each.spending for each in by_lane.values()), spent)
        spent = replace(spent, seconds=self._clock() - started)
        return self._together([each for each in refreshed if each is not None], needs, spent)

    def _offer_parts(
        self, parts: Sequence[int], window: int, needs: Sequence[RankingNeeds]
    ) -> None:
        own = sum(each.weight for each in needs)
        for at in parts:
            lane = self._lanes[at]
            bids = [self._bid(at, window, each, lane.share(each.weight, own)) for each in needs]
            lane.offer(self._closes_ms, self._flows[at].maintainer, bids)
        self._offered |= frozenset(parts)

    def _bid(self, at: int, window: int, needs: RankingNeeds, share: float) -> Bid[str]:
        """Return the keys of one service in the order in which to ask for them."""
        wanted, store = needs.wanted, self._flows[at].maintainer.store
        proposed = self._proposers[at].propose(window, wanted.candidates)
        most = self._flows[at].most_asked
        unknown = self._first(most, at, wanted.unknown, lambda key: key not in store)
        # What another service lacks of an unknown tuple may be old here.
        absent = self._first(most, at, wanted.unknown, lambda key: key in store)
        absent += self._first(most, at, wanted.absent, lambda key: True)
        self._orders[at].tuples, of_service = self._of_service(at, proposed)
        keys, worths = self._flows[at].appraised(
            unknown,
            of_service,
            absent,
            window=window,
            k=needs.k,
            scoring=needs.scoring,
            share=share,
        )
        return Bid(needs.query, needs.weight, keys, worths.tolist())

    def _first(
        self, most: int, at: int, tuples: Iterable[str], is_meant: Callable[[str], bool]
    ) -> list[str]:
        """Return the first keys of a service that some tuples depend on, as many as are of use."""
        found: dict[str, None] = {}
        for each in tuples:
            if len(found) >= most:
                break
            found.update((key, None) for key in self._view.needs_of(each)[at] if is_meant(key))
        return list(found)

    def _of_service(self, at: int, proposed: Proposed) -> tuple[list[str], Proposed]:
        """Return the keys of one service that proposed tuples depend on, each at its best place."""
        firsts: dict[str, int] = {}
        for place, key in enumerate(proposed.keys):
            for base in self._view.needs_of(key)[at]:
                firsts.setdefault(base, place)
        places = np.fromiter(firsts.values(), dtype=np.int64, count=len(firsts))
        return [proposed.keys[place] for place in places.tolist()], Proposed(
            tuple(firsts),
            proposed.merits[places],
            proposed.lasts[places],
            tuple(part[places] for part in proposed.parts),
        )

    def _together(
        self, refreshed: Sequence[Refreshed], needs: Sequence[RankingNeeds], spent: Spending
    ) -> Refreshed:
        """Bring the view up to date, and return what all services have said together."""
        self._view.forget_evicted()
        fetched = [each.fetched for each in refreshed]
        news = [each.changed for each in refreshed]
        moved = self._view.look_back(self._replicas.now(), news)
        self._view.rows([key for each in needs for key in each.wanted.unknown])
        others = [(*keys, *of_past) for keys, of_past in zip(news, moved, strict=True)]
        told = self._view.update(fetched, others)
        rejected: Counter[str] = Counter()
        for each in refreshed:
            rejected.update(each.rejected)
        return Refreshed(
            self._view.wholly(fetched),
            tuple(sorted(told.changed)),
            spent,
            0,
            next((each.failure for each in refreshed if each.failure), None),
            dict(rejected),
            tuple(fetched),
            told.first,
        )

    def note_quality(self, expected: Estimate) -> None:
        """Note the quality that the worst answer is expected to have after the refresh."""
        for flow in self._flows:
            flow.note_quality(expected)

    def snapshot(self) -> dict[str, bytes]:
        """Return the replicas with their histories, the orders' state, and the view's."""
        parts = {"view": self._view.snapshot(), **pack_lanes(self._lanes)}
        if self._replicas.join.looks_back:
            parts[_PAST] = self._view.history_snapshot()
        for at, (flow, proposer) in enumerate(zip(self._flows, self._proposers, strict=True)):
            parts[f"part{at}"] = pack_parts({**flow.snapshot(), "proposer": proposer.snapshot()})
        return {"refresher": pack_parts(parts)}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        inner = unpack_parts(parts["refresher"])
        resume_lanes(self._lanes, inner)
        for at, (flow, proposer) in enumerate(zip(self._flows, self._proposers, strict=True)):
            part = unpack_parts(inner[f"part{at}"])
            flow.resume(part)
            proposer.resume(part["proposer"])
        if self._replicas.join.looks_back:
            self._view.resume_history(inner[_PAST])
        self._view.resume(inner["view"])


def _depths(join: Join) -> list[int]:
    """Return each service's depth: 0, or one more than that of the service that gives its keys."""
    depths: list[int] = []
    for each in join.services:
        depths.append(0 if each.giver is None else depths[each.giver] + 1)
    return depths
