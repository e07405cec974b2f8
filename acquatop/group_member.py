"""One query of a group: how it ranks what the windows hold, and what it shows of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from acquatop.answer import Answer, Counts, Row, Status
from acquatop.binding import BoundQuery
from acquatop.evaluation.estimate import CERTAIN, Estimate
from acquatop.operators.aggregated import Aggregated
from acquatop.operators.certify import certify
from acquatop.operators.expectation import Expectation
from acquatop.operators.glimpse import Glimpse
from acquatop.operators.relation_to_stream import RelationToStream
from acquatop.operators.scattered import Scattered
from acquatop.operators.topkn import TopKN
from acquatop.rendering import Rendering
from acquatop.terms import to_rdflib
from acquatop.topk.contract import Top
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.budget import NOTHING
from replica.clocks import Clock
from replica.freshness.change_model import ChangeModel
from replica.maintainer import Maintainer, Refreshed
from replica.store import ReplicaStore


@dataclass(frozen=True)
class Closed:
    """A window that has closed, and what the refresh has brought that came with it."""

    window: int
    opens_ms: int
    closes_ms: int
    refreshed: Refreshed
    counts: Counts
    due_at: float


class GroupMember:
    """A query at work on its group's windows, from window ``since`` on.

    Its answers say what they can be expected to be worth, unless nobody ``expects`` them to.
    """

    def __init__(
        self,
        bound: BoundQuery,
        operator: Aggregated | Scattered | TopKN,
        maintainer: Maintainer[ReplicaStore] | None,
        glimpse: Glimpse | None,
        since: int | None,
        *,
        expects: bool = True,
    ) -> None:
        self.bound = bound
        self.operator = operator
        self.since = since
        self._maintainer = maintainer
        self._store = glimpse
        self._expectation = _expectation(operator, maintainer, glimpse, bound.plan.offset) if expects else None
        self._output = RelationToStream(bound.plan.output)
        self._rendering = Rendering(bound.plan)

    @property
    def topkn(self) -> TopKN:
        """The operator of a query without aggregates."""
        assert isinstance(self.operator, TopKN)
        return self.operator

    def has_begun(self, window: int) -> bool:
        """Say whether the query is to answer a window."""
        return self.since is None or self.since <= window

    def answer(self, closed: Closed, clock: Clock, wall_clock: Clock) -> Answer:
        """Return the answer of a window that has closed, once what has changed is applied."""
        window, refreshed, plan = closed.window, closed.refreshed, self.bound.plan
        top = self.operator.top(window)
        certificate = certify(self.operator, window, top, None if self._store is None else refreshed.fetched)
        expected = self._expect(top, window) if certificate.status is not Status.EXACT else CERTAIN
        answer = Answer(
            query=self.bound.name,
            window=window,
            opens_ms=closed.opens_ms,
            closes_ms=closed.closes_ms,
            rows=tuple(self._rows(top, refreshed)),
            status=certificate.status,
            reason=certificate.reason,
            bound=None if certificate.bound is None else self._rendering.score_of(certificate.bound),
            expected=expected if self._maintainer else None,
            spending=refreshed.spending,
            budget=self._maintainer.budget if self._maintainer else NOTHING,
            refreshed=tuple(to_rdflib(key) for key in sorted(refreshed.fetched)),
            failure=refreshed.failure,
            score_variable=plan.score.variable,
            variables=plan.projection,
            counts=replace(closed.counts, unscored=self.operator.unscored(window)),
            latency_seconds=clock() - closed.due_at,
            emitted_ms=round(1000 * wall_clock()),
        )
        return self._output(answer)

    def _expect(self, top: Top, window: int) -> Estimate | None:
        if self._expectation is None or self._maintainer is None:
            return None
        return self._expectation.of(top, self.operator.content(window), self._maintainer.now())

    def _rows(self, top: Top, refreshed: Refreshed) -> Iterator[Row]:
        """Yield the results. What comes before the offset is kept and certified like the rest, but not shown."""
        offset = self.bound.plan.offset
        keys = top.rows.keys[offset:].tolist()
        shown = zip(range(offset, len(top)), keys, self._remote_terms(keys), self._ages(keys), strict=True)
        for at, key, remote, age in shown:
            terms = {**remote, **self.operator.terms(top.rows, at)}
            score = self._rendering.score_of(float(top.merits[at]))
            yield Row(
                rank=at - offset + 1,
                bindings=self._rendering.bindings(terms, score),
                score=score,
                refreshed=key in refreshed.fetched if self._store is not None else None,
                age_seconds=age,
            )

    def _remote_terms(self, keys: list[str]) -> list[dict[str, str]]:
        """Return what the replica has for each key, by variable."""
        if self._store is None:
            return [{} for _ in keys]
        rows = self._store.rows(keys)
        columns = [self._store.terms(name, rows) for name in self._store.variables]
        return [
            {name: term for name, term in zip(self._store.variables, terms, strict=True) if term is not None}
            for terms in (zip(*columns, strict=True) if columns else [()] * len(keys))
        ]

    def _ages(self, keys: list[str]) -> list[float | None]:
        if self._maintainer is None or self._store is None:
            return [None] * len(keys)
        ages: list[float | None] = np.maximum(
            0.0, self._maintainer.now() - self._store.fetched_at(self._store.rows(keys))
        ).tolist()
        return ages

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return what is the query's own."""
        since = "" if self.since is None else str(self.since)
        parts = {"since": since.encode(), "output": self._output.snapshot()}
        if isinstance(self.operator, TopKN):
            parts["operator"] = self.operator.snapshot()
        return pack_parts(parts)

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot."""
        parts = unpack_parts(snapshot)
        self.since = int(parts["since"]) if parts["since"] else None
        self._output.resume(parts["output"])
        if isinstance(self.operator, TopKN):
            self.operator.resume(parts["operator"])


def _expectation(
    operator: Aggregated | Scattered | TopKN,
    maintainer: Maintainer[ReplicaStore] | None,
    glimpse: Glimpse | None,
    offset: int,
) -> Expectation | None:
    if maintainer is None or glimpse is None:
        return None
    model = ChangeModel(maintainer.store.history)
    return Expectation(operator.scoring, glimpse, model, k=operator.k, offset=offset)
