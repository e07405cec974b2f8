"""Facts about the remote in answers: values, freshness, certificate and expected quality."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from acquatop.answer.answer import Status
from acquatop.answer.certificate import Certificate
from acquatop.answer.estimate import CERTAIN, Estimate
from acquatop.answer.expected_quality import QualityEstimator
from acquatop.query.certify import certify, certify_alone, certify_past
from acquatop.query.joined_top import ALL, JoinedTop, joined_top, solutions_of, with_terms
from acquatop.query.ranking import TopKOperator
from acquatop.refresh.join_refresh import JoinedReplicas
from acquatop.topk.contract import Top
from replica.budget import NOTHING, Budget
from replica.freshness.change_model import ChangeModel
from replica.maintainer import Maintainer, Refreshed
from replica.store import JoinedStore
from replica.store.lookup_cache import LookupCache
from replica.view import KnownValues


class RemoteFacts(Protocol):
    """Facts that an answer states about its remote."""

    @property
    def values(self) -> KnownValues | None:
        """Values that the replica has; None without a remote."""

    @property
    def budget(self) -> Budget:
        """Budget of an evaluation."""

    def joined(self, top: Top, most: int | None = None, least: float = ALL) -> JoinedTop:
        """Return the results that a window's best solutions are part of.

        These are the best ``most``, or all with a merit of at ``least`` so much.
        """

    def certify(self, window: int, top: Top, refreshed: Refreshed) -> Certificate:
        """Return the certificate of an answer, after a refresh."""

    def expect(self, window: int, top: Top, status: Status) -> Estimate | None:
        """Return the expected quality of an answer; None if nothing is estimated."""

    def ages(self, keys: list[str]) -> Sequence[float | None]:
        """Return the seconds since each key was fetched."""

    def was_refreshed(self, key: str, fetched: frozenset[str]) -> bool | None:
        """Return True if a key was fetched just now; None without a remote."""


class NoRemoteFacts:
    """Facts of a query that asks no remote."""

    budget = NOTHING
    values = None

    def joined(self, top: Top, most: int | None = None, least: float = ALL) -> JoinedTop:
        """Return the solutions as they are."""
        return with_terms(top, [{}] * len(top))

    def certify(self, window: int, top: Top, refreshed: Refreshed) -> Certificate:
        """Return the certificate of an answer that the stream alone decides."""
        return certify_alone(top)

    def expect(self, window: int, top: Top, status: Status) -> Estimate | None:
        """Return None."""
        return None

    def ages(self, keys: list[str]) -> Sequence[float | None]:
        """Return no ages."""
        return [None] * len(keys)

    def was_refreshed(self, key: str, fetched: frozenset[str]) -> bool | None:
        """Return None."""
        return None


class ReplicaFacts:
    """Facts about a query's replica.

    Expected quality is estimated unless ``expects`` is False.
    """

    def __init__(
        self,
        operator: TopKOperator,
        maintainer: Maintainer[JoinedStore] | JoinedReplicas,
        lookups: LookupCache,
        offset: int,
        *,
        expects: bool,
    ) -> None:
        self._operator = operator
        self._maintainer = maintainer
        self._store = lookups
        self._expectation: QualityEstimator | None = None
        if expects:
            model = ChangeModel(maintainer.store.history)
            self._expectation = QualityEstimator(
                operator.scoring, lookups, model, k=operator.k, offset=offset
            )

    @property
    def values(self) -> KnownValues:
        """Values that the replica has."""
        return self._store

    @property
    def budget(self) -> Budget:
        """Budget of an evaluation."""
        return self._maintainer.budget

    def joined(self, top: Top, most: int | None = None, least: float = ALL) -> JoinedTop:
        """Return the results that a window's best solutions are part of."""
        return joined_top(self._operator, top, self._store, most, least)

    def certify(self, window: int, top: Top, refreshed: Refreshed) -> Certificate:
        """Return the certificate of an answer, after a refresh."""
        found = certify(self._operator, window, top, refreshed.fetched, refreshed.ambiguous)
        replicas = self._maintainer
        if isinstance(replicas, JoinedReplicas) and replicas.join.looks_back:
            return certify_past(found, self._operator, window, top, replicas.store)
        return found

    def expect(self, window: int, top: Top, status: Status) -> Estimate | None:
        """Return the expected quality of an answer: an exact one is certain to be right."""
        if status is Status.EXACT:
            return CERTAIN
        if self._expectation is None:
            return None
        content, now = self._operator.content(window), self._maintainer.now()
        return self._expectation.of(solutions_of(top), content, now)

    def ages(self, keys: list[str]) -> Sequence[float | None]:
        """Return the seconds since each key was fetched."""
        fetched_at = self._store.fetched_at(self._store.rows(keys))
        ages: list[float] = np.maximum(0.0, self._maintainer.now() - fetched_at).tolist()
        return ages

    def was_refreshed(self, key: str, fetched: frozenset[str]) -> bool | None:
        """Return True if a key was fetched just now."""
        return key in fetched
