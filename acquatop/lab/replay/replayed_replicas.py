"""Replicas of a replay: filled from recorded remotes, in simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from acquatop.catalog.remotes import TableSource
from acquatop.catalog.services import Service
from acquatop.lab.replay.remembered_remote import RememberedRemote
from acquatop.plan.asked_patterns import AskedPattern, asked_patterns
from acquatop.plan.bound import BoundQuery, BoundWindowed
from acquatop.plan.remote_query import RemoteQuery
from acquatop.refresh.join_refresh import JoinedReplicas
from replica.access import Access
from replica.clocks import EventTime
from replica.maintainer import Maintainer
from replica.remotes.table import TableRemote
from replica.spending.account import Account
from replica.spending.quota import Quota
from replica.store import JoinedStore, ReplicaStore, RunStore, SolutionStore
from replica.store.keyed_store import KeyedStore
from replica.workers import Work, Workers

StoreT = TypeVar("StoreT", bound=KeyedStore)


@dataclass(frozen=True)
class _Way:
    """Way to one service: what all its patterns have in common."""

    account: Account
    access: Access


class ReplayedReplicas:
    """Factory of a query's replicas. They ask as the engine's do, each service with its own budget.

    A request takes no time, and its values are those of ``now``. Requests are sent one after the
    other as they are decided. The tables are read once.
    """

    def __init__(self, now: EventTime) -> None:
        self._now = now
        self._remotes: dict[tuple[str, RemoteQuery], RememberedRemote] = {}

    def open(self, bound: BoundQuery) -> Maintainer[JoinedStore] | JoinedReplicas:
        """Return the maintainer of a query's replica, or of all that it joins.

        They are filled if the services say so.
        """
        patterns = asked_patterns(bound)
        if bound.plan.join is None:
            (asked,) = patterns
            kind = ReplicaStore if asked.service.solutions == "one" else RunStore
            store = kind(asked.key, asked.question.variables, limit=asked.service.capacity)
            return self._open(store, asked, self._way(asked.service))
        maintainers = self._open_several(patterns)
        return JoinedReplicas(bound.plan.join, bound.services, maintainers, bound.graphs)

    def open_all(self, bound: BoundWindowed) -> list[Maintainer[SolutionStore]]:
        """Return the maintainers of the replicas of whole windows, in the order of the remotes."""
        return self._open_several(asked_patterns(bound))

    def _open_several(self, patterns: Sequence[AskedPattern]) -> list[Maintainer[SolutionStore]]:
        ways = {each.service.iri: self._way(each.service) for each in patterns}
        return [
            self._open(
                SolutionStore(each.key, each.question.variables, limit=each.service.capacity),
                each,
                ways[each.service.iri],
            )
            for each in patterns
        ]

    def _way(self, service: Service) -> _Way:
        account = Account(
            service.refresh.budget,
            quota=Quota(service.limits, time=self._now),
            bank=service.refresh.bank,
            clock=standing_still,
        )
        access = Access(
            block_size=service.block_size,
            clock=standing_still,
            jitter=standing_still,
            workers=_AtOnce(),
        )
        return _Way(account, access)

    def _open(self, store: StoreT, asked: AskedPattern, way: _Way) -> Maintainer[StoreT]:
        maintainer = Maintainer(
            store,
            self._remote(asked),
            way.account,
            access=way.access,
            clock=standing_still,
            now=self._now,
        )
        if asked.service.load:
            maintainer.load()
        return maintainer

    def _remote(self, asked: AskedPattern) -> RememberedRemote:
        place = asked.service.iri, asked.question
        if place not in self._remotes:
            source = asked.service.source
            assert isinstance(source, TableSource)
            table = TableRemote(
                source.path,
                mapping=source.mapping,
                star=asked.question.star(source.mapping),
                time=source.time,
                now_ms=self._now_ms,
                block_size=asked.service.block_size,
            )
            self._remotes[place] = RememberedRemote(table, asked.key, self._now_ms)
        return self._remotes[place]

    def _now_ms(self) -> int:
        return round(1000 * self._now())


class _AtOnce(Workers):
    """Workers that run each request when it is sent: in order, without waiting."""

    def __init__(self) -> None:
        super().__init__(1)

    def start(self, work: Work) -> None:
        """Run the work."""
        work()
        self.release()


def standing_still() -> float:
    """Return the time of a clock that stands still."""
    return 0.0
