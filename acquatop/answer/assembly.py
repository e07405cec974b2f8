"""Assembly of answers: the only place that makes an :class:`Answer` and converts it to a stream."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from rdflib.term import Identifier

from acquatop.answer.answer import Answer, Counts, Row, Shown
from acquatop.answer.certificate import Certificate
from acquatop.answer.estimate import Estimate
from acquatop.answer.relation_to_stream import RelationToStream
from acquatop.answer.why import Evidence
from acquatop.catalog.quality_target import QualityTarget
from replica.budget import NOTHING, Budget, Spending
from replica.clocks import Clock


@dataclass(frozen=True)
class ClosedWindow:
    """Window that has closed: its bounds, and the time at which its answer was due."""

    window: int
    opens_ms: int
    closes_ms: int
    due_at: float


@dataclass(frozen=True)
class RemoteUse:
    """Use of the remotes for one answer: keys fetched, spending and budget, and any failure."""

    refreshed: tuple[Identifier, ...] = ()
    spending: Spending = field(default_factory=Spending)
    budget: Budget = NOTHING
    failure: str | None = None
    target: QualityTarget | None = None


@dataclass(frozen=True)
class Result:
    """Result of a query at the close of a window."""

    rows: Iterable[Row] = ()
    variables: tuple[str, ...] = ()
    form: str = "select"
    boolean: bool | None = None
    triples: tuple[str, ...] = ()
    windows: tuple[Shown, ...] = ()


class Assembly:
    """Assembly of the answers of one query, in the order of their windows."""

    def __init__(
        self,
        query: str,
        output: str,
        *,
        score_variable: str | None,
        clock: Clock,
        wall_clock: Clock,
    ) -> None:
        self._query = query
        self._score_variable = score_variable
        self._clock = clock
        self._wall_clock = wall_clock
        self._output = RelationToStream(output)

    def answer(
        self,
        closed: ClosedWindow,
        result: Result,
        certificate: Certificate,
        counts: Counts,
        use: RemoteUse = RemoteUse(),
        *,
        expected: Estimate | None = None,
        evidence: Evidence | None = None,
    ) -> Answer:
        """Return the answer of a window after the query's relation-to-stream operator."""
        answer = Answer(
            query=self._query,
            window=closed.window,
            opens_ms=closed.opens_ms,
            closes_ms=closed.closes_ms,
            rows=tuple(result.rows),
            status=certificate.status,
            reason=certificate.reason,
            spending=use.spending,
            budget=use.budget,
            refreshed=use.refreshed,
            failure=use.failure,
            counts=counts,
            latency_seconds=self._clock() - closed.due_at,
            emitted_ms=round(1000 * self._wall_clock()),
            score_variable=self._score_variable,
            variables=result.variables,
            form=result.form,
            boolean=result.boolean,
            triples=result.triples,
            windows=result.windows,
            bound=certificate.bound,
            expected=expected,
            evidence=evidence,
            target=use.target,
        )
        return self._output(answer)

    def snapshot(self) -> bytes:
        """Return the state: the last answer, if the next one is compared with it."""
        return self._output.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        self._output.resume(snapshot)
