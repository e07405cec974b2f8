"""Facts about the remote in answers: values, freshness, certificate and expected quality."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

import numpy as np

from acquatop.answer.answer import Status
from acquatop.answer.certificate import Certificate
from acquatop.answer.estimate import CERTAIN, Estimate
from acquatop.answer.expected_quality import QualityEstimator
from acquatop.query.certify import certify, certify_alone, certify_past
from acquatop.query.joined_top import ALL, JoinedTop, joined_top, solutions_of, with_terms
from acquatop.query.ranking import TopKOperator
from acquatop.query.told import Told
from acquatop.refresh.join_refresh import JoinedReplicas
from acquatop.topk.contract import FloatArray, Top
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

    @property
    def chances(self) -> Mapping[str, float]:
        """Chances that solutions belong in the last answer by now, by identity, if estimated."""

    def told(self, keys: list[str], fetched: frozenset[str]) -> Told | None:
        """Return what the replica has of some keys; None if they are no keys of a remote."""

    def numbers(self, keys: list[str], names: Sequence[str]) -> dict[str, FloatArray]:
        """Return the remote's numbers of keys that have one each, by variable."""


class NothingTold:
    """Facts of answers whose solutions are no keys of a remote."""

    chances: Mapping[str, float] = MappingProxyType({})

    def told(self, keys: list[str], fetched: frozenset[str]) -> Told | None:
        """Return None."""
        return None

    def numbers(self, keys: list[str], names: Sequence[str]) -> dict[str, FloatArray]:
        """Return no numbers."""
        return {}


class NoRemoteFacts(NothingTold):
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

    @property
    def chances(self) -> Mapping[str, float]:
        """Chances that solutions belong in the last answer by now, by identity."""
        return {} if self._expectation is None else self._expectation.chances

    def told(self, keys: list[str], fetched: frozenset[str]) -> Told | None:
        """Return what the replica has of some keys."""
        rows = self._store.rows(keys)
        known = rows >= 0
        present = known.copy()
        present[known] = self._store.present(rows[known])
        ages = np.full(len(keys), np.nan)
        ages[known] = np.maximum(0.0, self._maintainer.now() - self._store.fetched_at(rows[known]))
        is_fetched = np.fromiter((key in fetched for key in keys), np.bool_, len(keys))
        return Told(known, present, ages, is_fetched)

    def numbers(self, keys: list[str], names: Sequence[str]) -> dict[str, FloatArray]:
        """Return the remote's numbers of keys; none if a key may have several."""
        rows = self._store.rows(keys)
        runs = self._store.runs(rows, least=1)
        if runs is not None and not runs.is_plain:
            return {}
        places = rows if runs is None else runs.places
        return {name: self._store.numbers(name, places) for name in names}
