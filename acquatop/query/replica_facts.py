"""What a query's answers say of the remote: its values, how fresh they are, and how far they can be trusted."""

from __future__ import annotations

import numpy as np

from acquatop.answer.estimate import Estimate
from acquatop.answer.expected_quality import Expectation
from acquatop.query.certify import Certificate, certify
from acquatop.query.ranking import TopKOperator
from acquatop.refresh.lookup_cache import Glimpse
from acquatop.topk.contract import Top
from replica.budget import Budget
from replica.freshness.change_model import ChangeModel
from replica.maintainer import Maintainer, Refreshed
from replica.store import ReplicaStore


class RemoteSide:
    """A query's replica, as its answers show it.

    They say what they can be expected to be worth, unless nobody ``expects`` them to.
    """

    def __init__(
        self,
        operator: TopKOperator,
        maintainer: Maintainer[ReplicaStore],
        glimpse: Glimpse,
        offset: int,
        *,
        expects: bool,
    ) -> None:
        self._operator = operator
        self._maintainer = maintainer
        self._store = glimpse
        self._expectation: Expectation | None = None
        if expects:
            model = ChangeModel(maintainer.store.history)
            self._expectation = Expectation(operator.scoring, glimpse, model, k=operator.k, offset=offset)

    @property
    def budget(self) -> Budget:
        """What may be spent on an evaluation."""
        return self._maintainer.budget

    def certify(self, window: int, top: Top, refreshed: Refreshed) -> Certificate:
        """Say how far an answer can be trusted, after a refresh."""
        return certify(self._operator, window, top, refreshed.fetched, refreshed.ambiguous)

    def expect(self, window: int, top: Top) -> Estimate | None:
        """Return what an answer can be expected to be worth, if anybody wants to know."""
        if self._expectation is None:
            return None
        return self._expectation.of(top, self._operator.content(window), self._maintainer.now())

    def of(self, keys: list[str]) -> tuple[list[dict[str, str]], list[float]]:
        """Return what the replica has for each key, by variable, and how many seconds ago it was fetched."""
        return self._terms(keys), self._ages(keys)

    def _terms(self, keys: list[str]) -> list[dict[str, str]]:
        rows = self._store.rows(keys)
        columns = [self._store.terms(name, rows) for name in self._store.variables]
        return [
            {name: term for name, term in zip(self._store.variables, terms, strict=True) if term is not None}
            for terms in (zip(*columns, strict=True) if columns else [()] * len(keys))
        ]

    def _ages(self, keys: list[str]) -> list[float]:
        fetched_at = self._store.fetched_at(self._store.rows(keys))
        ages: list[float] = np.maximum(0.0, self._maintainer.now() - fetched_at).tolist()
        return ages
