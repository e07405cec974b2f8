"""One query of a group: how it ranks what the windows hold, and what it shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from rdflib.term import Identifier

from acquatop.answer.answer import Answer, Counts, Row, Status
from acquatop.answer.estimate import CERTAIN
from acquatop.answer.relation_to_stream import RelationToStream
from acquatop.answer.render import Rendering
from acquatop.ingest.terms import to_rdflib
from acquatop.plan.bind import BoundQuery
from acquatop.query.certify import certify_alone
from acquatop.query.ranking import Ranked
from acquatop.query.replica_facts import RemoteSide
from acquatop.query.topk.content import TopKN
from acquatop.topk.contract import Top
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.budget import NOTHING
from replica.clocks import Clock
from replica.maintainer import Refreshed


@dataclass(frozen=True)
class Closed:
    """A window that has closed, and what the refresh has brought that came with it."""

    window: int
    opens_ms: int
    closes_ms: int
    refreshed: Refreshed
    counts: Counts
    due_at: float


Bindings = Mapping[str, Identifier]

_SHOWN = 1 << 16
"""Of how many solutions it is known what they have been shown with."""

OperatorT = TypeVar("OperatorT", bound=Ranked)


class GroupMember(Generic[OperatorT]):
    """A query at work on its group's windows, from window ``since`` on, with a remote or without.

    Where what a solution binds never changes, ``shown`` is what solutions have been shown with, by their keys: by this
    query, or by others that show the same.
    """

    def __init__(
        self,
        bound: BoundQuery,
        operator: OperatorT,
        remote: RemoteSide | None = None,
        since: int | None = None,
        shown: dict[str, Bindings] | None = None,
    ) -> None:
        self.bound = bound
        self.operator = operator
        self.since = since
        self._remote = remote
        self._shown = shown
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
        window, refreshed, plan, remote = closed.window, closed.refreshed, self.bound.plan, self._remote
        top = self.operator.top(window)
        certificate = certify_alone(top) if remote is None else remote.certify(window, top, refreshed)
        expected = None
        if remote is not None:
            expected = CERTAIN if certificate.status is Status.EXACT else remote.expect(window, top)
        answer = Answer(
            query=self.bound.name,
            window=window,
            opens_ms=closed.opens_ms,
            closes_ms=closed.closes_ms,
            rows=tuple(self._rows(top, refreshed)),
            status=certificate.status,
            reason=certificate.reason,
            bound=None if certificate.bound is None else self._rendering.score_of(certificate.bound),
            expected=expected,
            spending=refreshed.spending,
            budget=NOTHING if remote is None else remote.budget,
            refreshed=tuple(to_rdflib(key) for key in sorted(refreshed.fetched)),
            failure=refreshed.failure,
            score_variable=plan.score.variable,
            variables=plan.projection,
            counts=replace(closed.counts, unscored=self.operator.unscored(window)),
            latency_seconds=clock() - closed.due_at,
            emitted_ms=round(1000 * wall_clock()),
        )
        return self._output(answer)

    def _rows(self, top: Top, refreshed: Refreshed) -> Iterator[Row]:
        """Yield the results. What comes before the offset is kept and certified like the rest, but not shown."""
        offset = self.bound.plan.offset
        keys = top.rows.keys[offset:].tolist()
        unknown = (None,) * len(keys)
        remote_terms, ages = (unknown, unknown) if self._remote is None else self._remote.of(keys)
        shown = zip(range(offset, len(top)), keys, remote_terms, ages, strict=True)
        for at, key, remote, age in shown:
            score = self._rendering.score_of(float(top.merits[at]))
            bindings = None if self._shown is None else self._shown.get(key)
            if bindings is None:
                terms = {**(remote or {}), **self.operator.terms(top.rows, at)}
                bindings = self._rendering.bindings(terms, score)
                self._remember(key, bindings)
            yield Row(
                rank=at - offset + 1,
                bindings=bindings,
                score=score,
                refreshed=key in refreshed.fetched if self._remote is not None else None,
                age_seconds=age,
            )

    def _remember(self, key: str, bindings: Bindings) -> None:
        if self._shown is not None:
            if len(self._shown) >= _SHOWN:
                self._shown.clear()
            self._shown[key] = bindings

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
