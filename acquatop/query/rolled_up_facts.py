"""Facts about the remote in answers that group a join."""

from __future__ import annotations

import math
from collections.abc import Sequence

from acquatop.answer.answer import Status
from acquatop.answer.certificate import Certificate
from acquatop.answer.estimate import CERTAIN, Estimate
from acquatop.query.aggregates.rolled_up import RolledUpRanking
from acquatop.query.certify import certify_alone
from acquatop.query.joined_top import ALL, JoinedTop, with_terms
from acquatop.query.replica_facts import NothingTold
from acquatop.refresh.join_refresh import JoinedReplicas
from acquatop.topk.contract import Top
from replica.budget import Budget
from replica.maintainer import Maintainer, Refreshed
from replica.store import JoinedStore
from replica.store.lookup_cache import LookupCache
from replica.view import KnownValues


class RolledUpFacts(NothingTold):
    """Facts about the replica of a query whose groups are added up from all keys of a window.

    Any key can change any group. So an answer is exact only if all keys were fetched just now, and
    approximate as long as one is unknown.
    """

    def __init__(
        self,
        ranking: RolledUpRanking,
        maintainer: Maintainer[JoinedStore] | JoinedReplicas,
        lookups: LookupCache,
    ) -> None:
        self._ranking = ranking
        self._maintainer = maintainer
        self._lookups = lookups
        self._window = 0

    @property
    def values(self) -> KnownValues:
        """Values that the replica has."""
        return self._lookups

    @property
    def budget(self) -> Budget:
        """Budget of an evaluation."""
        return self._maintainer.budget

    def joined(self, top: Top, most: int | None = None, least: float = ALL) -> JoinedTop:
        """Return the groups as they are: they are of what has been joined."""
        return with_terms(top, [{}] * len(top))

    def certify(self, window: int, top: Top, refreshed: Refreshed) -> Certificate:
        """Return the certificate of an answer, after a refresh."""
        self._window = window
        unknown = self._ranking.count_unknown()
        if unknown:
            reason = f"{unknown} of the window's keys have no value from the remote yet"
            return Certificate(Status.APPROXIMATE, reason, math.inf)
        certificate = certify_alone(top)
        is_fresh = self._ranking.is_wholly_in(refreshed.fetched) and not refreshed.ambiguous
        if certificate.status is Status.EXACT and not is_fresh:
            return Certificate(Status.CERTIFIED)
        return certificate

    def expect(self, window: int, top: Top, status: Status) -> Estimate | None:
        """Return the quality of an exact answer; nothing is estimated of others."""
        return CERTAIN if status is Status.EXACT else None

    def ages(self, keys: list[str]) -> Sequence[float | None]:
        """Return the seconds since the oldest value of each group was fetched."""
        fetched = self._ranking.oldest_fetches(self._window, keys).tolist()
        now = self._maintainer.now()
        return [None if math.isnan(each) else max(0.0, now - each) for each in fetched]

    def was_refreshed(self, key: str, fetched: frozenset[str]) -> bool | None:
        """Return True if all keys of a group were fetched just now."""
        return all(each in fetched for each in self._ranking.members(self._window, key))
