"""Remote that a top-k evaluation joins its stream with, or none."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates.rolled_up import RolledUpRanking
from acquatop.query.constant_facts import ConstantFacts
from acquatop.query.ranking import ChangingRanking, TopKOperator
from acquatop.query.replica_facts import NoRemoteFacts, RemoteFacts, ReplicaFacts
from acquatop.query.rolled_up_facts import RolledUpFacts
from acquatop.refresh.constant_join import ConstantJoin, ConstantRefresh
from acquatop.refresh.join_refresh import JoinedReplicas, JoinRefresh
from acquatop.refresh.lanes import Lanes
from acquatop.refresh.open_replicas import Joined
from acquatop.refresh.replica_refresh import NoRefresh, ReplicaRefresh, WindowRefresh
from replica.clocks import Clock
from replica.maintainer import Maintainer
from replica.rankers import RankerRegistry
from replica.store import JoinedStore
from replica.store.lookup_cache import LookupCache
from rspql.plan import CountWindow


class JoinedRemote(Protocol):
    """Replica, its refresh, and the facts that answers state about it."""

    @property
    def store(self) -> JoinedStore | None:
        """Values of the replica; None without a remote."""

    @property
    def refresh(self) -> WindowRefresh:
        """Refresh at the close of a window."""

    @property
    def keys(self) -> int:
        """Number of keys in the replica."""

    def facts(self, ranking: ChangingRanking, offset: int) -> RemoteFacts:
        """Return the facts that answers of one ranking state."""

    def renew_lookups(self) -> None:
        """Forget looked-up rows: the replica may have changed."""

    def close(self) -> None:
        """Close the feed."""


class NoRemote:
    """No remote: the stream alone."""

    store = None
    keys = 0

    def __init__(self) -> None:
        self.refresh = NoRefresh()

    def facts(self, ranking: ChangingRanking, offset: int) -> RemoteFacts:
        """Return the facts of a query without a remote."""
        return NoRemoteFacts()

    def renew_lookups(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class Constants:
    """Static graphs, and nothing else."""

    def __init__(self, constants: ConstantJoin, open_at_once: int) -> None:
        self.store: JoinedStore = constants.store
        self.refresh: WindowRefresh = ConstantRefresh(constants, open_at_once)
        self._constants = constants
        self._lookups = LookupCache(constants.store)

    @property
    def keys(self) -> int:
        """Number of tuples that have been joined."""
        return len(self.store)

    def facts(self, ranking: ChangingRanking, offset: int) -> RemoteFacts:
        """Return the facts that answers of one ranking state."""
        return ConstantFacts(ranking, self._constants, self._lookups)

    def renew_lookups(self) -> None:
        """Forget looked-up rows."""
        self._lookups.renew()

    def close(self) -> None:
        """Do nothing."""


class ReplicaRemote:
    """Replica of one service, or of several that are joined."""

    def __init__(
        self,
        maintainer: Maintainer[JoinedStore] | JoinedReplicas,
        refresh: WindowRefresh,
        *,
        expects: bool,
    ) -> None:
        self.store: JoinedStore = maintainer.store
        self.refresh = refresh
        self._maintainer = maintainer
        self._lookups = LookupCache(maintainer.store)
        self._expects = expects

    @property
    def keys(self) -> int:
        """Number of keys in the replica."""
        return len(self.store)

    def facts(self, ranking: ChangingRanking, offset: int) -> RemoteFacts:
        """Return the facts that answers of one ranking state."""
        if isinstance(ranking, RolledUpRanking):
            return RolledUpFacts(ranking, self._maintainer, self._lookups)
        assert isinstance(ranking, TopKOperator), "others join one by one"
        return ReplicaFacts(ranking, self._maintainer, self._lookups, offset, expects=self._expects)

    def renew_lookups(self) -> None:
        """Forget looked-up rows."""
        self._lookups.renew()

    def close(self) -> None:
        """Close the feed."""
        self._maintainer.close()


def remote_of(
    bound: BoundQuery,
    maintainer: Joined | None,
    rankers: RankerRegistry,
    random: np.random.Generator | None,
    *,
    clock: Clock,
    expects: bool,
    lanes: Lanes | None = None,
) -> JoinedRemote:
    """Return what a query joins its stream with, if there is anything.

    In ``lanes`` it shares budgets with other queries.
    """
    if maintainer is None:
        return NoRemote()
    if isinstance(maintainer, ConstantJoin):
        return Constants(maintainer, -(-bound.windows.width_ms // bound.windows.slide_ms))
    assert bound.service is not None
    random = random or np.random.default_rng(0)
    counts = isinstance(bound.plan.window, CountWindow)
    by_service = {} if lanes is None else lanes.by_service
    slide_ms = None if counts else bound.windows.slide_ms
    refresh: WindowRefresh
    if isinstance(maintainer, JoinedReplicas):
        refresh = JoinRefresh(
            maintainer, rankers, random, slide_ms=slide_ms, clock=clock, lanes=by_service
        )
    else:
        refresh = ReplicaRefresh(
            bound.service,
            maintainer,
            rankers,
            random,
            slide_ms=slide_ms,
            clock=clock,
            lane=by_service.get(bound.service.iri),
        )
    return ReplicaRemote(maintainer, refresh, expects=expects)
