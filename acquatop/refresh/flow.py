"""Flow of every refresh: begin, touch, order the keys wanted, ask, wait for all, store."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from acquatop.answer.estimate import Estimate
from acquatop.catalog.services import Service
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.refresh.order import Appraised, RefreshOrder
from acquatop.refresh.proposers import ranker_name
from acquatop.refresh.proposers.contract import Proposed
from replica.maintainer import InFlight, Maintainer, Refreshed
from replica.rankers import RankerRegistry
from replica.store import JoinedStore, SolutionStore

StoreT = TypeVar("StoreT", bound=JoinedStore | SolutionStore)
OrderT = TypeVar("OrderT", bound=RefreshOrder[Any])

_POLL_SECONDS = 0.005
"""Seconds for one round of polling all the replicas that are waited for."""


class ReplicaFlow(Generic[StoreT]):
    """Steps of the refresh of one replica, in the order in which they are called."""

    def __init__(self, maintainer: Maintainer[StoreT], order: RefreshOrder[StoreT]) -> None:
        self.maintainer = maintainer
        self._order = order

    def begin(self, closes_ms: int) -> None:
        """Begin the refresh of a window that closes: store what has come since the last one."""
        self.maintainer.begin(closes_ms)

    @property
    def most_asked(self) -> int:
        """Number of keys that can be of use: those that may be asked for, and those under way."""
        return self.maintainer.budget.items + self.maintainer.keys_under_way

    @property
    def absent_before(self) -> float:
        """Latest time of a request after which an absent key may be asked for again."""
        return self._order.absent_before(self.maintainer.now())

    @property
    def evicts(self) -> bool:
        """True if the replica has a capacity, and has to know the keys that are needed."""
        return self.maintainer.store.limit is not None

    def touch(self, keys: Iterable[str]) -> None:
        """Keep the values of keys that are needed."""
        store = self.maintainer.store
        store.touch(store.rows(list(keys)))

    def ordered(
        self,
        unknown: Sequence[str],
        proposed: Proposed,
        absent: Sequence[str],
        *,
        window: int,
        k: int,
        scoring: ReplicaScoring | None = None,
    ) -> list[str]:
        """Return keys in the order in which to ask for them."""
        return self.appraised(unknown, proposed, absent, window=window, k=k, scoring=scoring).keys

    def appraised(
        self,
        unknown: Sequence[str],
        proposed: Proposed,
        absent: Sequence[str],
        *,
        window: int,
        k: int,
        scoring: ReplicaScoring | None = None,
        share: float = 1.0,
    ) -> Appraised:
        """Return keys in the order in which to ask for them, and the worth of each.

        Others have a claim to all but a ``share`` of the usual spending.
        """
        now = self.maintainer.now()
        return self._order(
            unknown,
            proposed,
            absent,
            window=window,
            k=k,
            now=now,
            scoring=scoring,
            allowance=self.maintainer.allowance(self._order.slide_at(window, now)).part(share),
        )

    def note_quality(self, expected: Estimate) -> None:
        """Note the quality that an answer is expected to have after the refresh."""
        self._order.note_quality(expected)

    def snapshot(self) -> dict[str, bytes]:
        """Return the replica with its history, and the order's random state."""
        return {"maintainer": self.maintainer.snapshot(), "order": self._order.snapshot()}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self.maintainer.resume(parts["maintainer"])
        self._order.resume(parts["order"])


class KeyRequest(NamedTuple):
    """Replica and the keys to ask its remote for, in order."""

    maintainer: Maintainer[JoinedStore] | Maintainer[SolutionStore]
    keys: Sequence[str]


def fetch(requests: Iterable[KeyRequest], until: float) -> list[Refreshed]:
    """Ask for the first keys that each account allows; store the replies that come in time.

    Requests are made one after the other, as they are given, and waited for together.
    """
    asked = [(each.maintainer, each.maintainer.ask(each.keys)) for each in requests]
    _wait(asked, until)
    return [maintainer.gather(in_flight, until) for maintainer, in_flight in asked]


def _wait(
    asked: Sequence[tuple[Maintainer[JoinedStore] | Maintainer[SolutionStore], InFlight]],
    until: float,
) -> None:
    """Wait for several replicas at the same time: none may delay another."""
    waiting = asked
    while len(waiting) > 1:
        seconds = _POLL_SECONDS / len(waiting)
        waiting = [each for each in waiting if each[0].waits(each[1], until, seconds)]


def order_of(
    kind: type[OrderT],
    service: Service,
    store: JoinedStore | SolutionStore,
    rankers: RankerRegistry,
    random: np.random.Generator,
    slide_ms: int | None,
) -> OrderT:
    """Return the order that a service's policy asks for."""
    return kind(
        store,
        rankers[ranker_name(service.refresh.policy)](),
        slide_ms=slide_ms,
        ask_absent_after=service.ask_absent_after,
        random=random,
        target=service.refresh.target,
    )
