"""Facts in answers that a join with static graphs has a part in, and no remote."""

from __future__ import annotations

import math
from collections.abc import Sequence

from acquatop.answer.answer import Status
from acquatop.answer.certificate import Certificate
from acquatop.answer.estimate import Estimate
from acquatop.query.certify import certify_alone
from acquatop.query.joined_top import ALL, JoinedTop, joined_top, with_terms
from acquatop.query.ranking import ChangingRanking, TopKOperator
from acquatop.query.replica_facts import NothingTold
from acquatop.refresh.constant_join import ConstantJoin
from acquatop.topk.contract import Top
from replica.budget import NOTHING
from replica.maintainer import Refreshed
from replica.store.lookup_cache import LookupCache
from replica.view import KnownValues

_CHANGED = "a static graph changed while the query was stopped, and some of the window came before"


class ConstantFacts(NothingTold):
    """Facts about a join with what never changes: the stream decides what an answer is worth."""

    budget = NOTHING

    def __init__(
        self, ranking: ChangingRanking, constants: ConstantJoin, lookups: LookupCache
    ) -> None:
        self._operator = ranking if isinstance(ranking, TopKOperator) else None
        self._constants = constants
        self._store = lookups

    @property
    def values(self) -> KnownValues:
        """Values that are joined."""
        return self._store

    def joined(self, top: Top, most: int | None = None, least: float = ALL) -> JoinedTop:
        """Return the results that a window's best solutions are part of; groups as they are."""
        if self._operator is None:
            return with_terms(top, [{}] * len(top))
        return joined_top(self._operator, top, self._store, most, least)

    def certify(self, window: int, top: Top, refreshed: Refreshed) -> Certificate:
        """Return the certificate of an answer that the stream alone decides."""
        until = self._constants.changed_until
        if until is not None and window < until:
            return Certificate(Status.APPROXIMATE, _CHANGED, math.inf)
        return certify_alone(top)

    def expect(self, window: int, top: Top, status: Status) -> Estimate | None:
        """Return None: nothing that was fetched can be old."""
        return None

    def ages(self, keys: list[str]) -> Sequence[float | None]:
        """Return no ages."""
        return [None] * len(keys)

    def was_refreshed(self, key: str, fetched: frozenset[str]) -> bool | None:
        """Return None: nothing is fetched."""
        return None
