"""One continuous query: events in, an answer out at every window close."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from rdflib.term import Identifier

from acquatop.answer import Answer, Counts, Row, Status
from acquatop.binding import BoundQuery
from acquatop.evaluation.estimate import CERTAIN, Estimate
from acquatop.operators.aggregated import Aggregated
from acquatop.operators.certify import certify
from acquatop.operators.contract import TopKOperator
from acquatop.operators.expectation import Expectation
from acquatop.operators.occupancy import Occupancy
from acquatop.operators.panes import PaneBuffer
from acquatop.operators.proposers import proposer_of, ranker_name
from acquatop.operators.refresh_order import RefreshOrder
from acquatop.operators.relation_to_stream import RelationToStream
from acquatop.operators.topkn import TopKN
from acquatop.tally import Tally
from acquatop.terms import datatype_of, score_literal, to_rdflib
from acquatop.topk.contract import Top
from replica.budget import NOTHING, Spending
from replica.clocks import Clock
from replica.freshness.change_model import ChangeModel
from replica.maintainer import Maintainer, Refreshed
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from replica.store import ReplicaStore
from rspql.scoring import result_type

EMPTY_RUN = 10_000
"""The longest run of empty windows that is answered one by one: time has jumped when there are more."""


class ContinuousQuery:
    """A query at work, free of any runtime: whoever has events hands them in and takes the answers.

    It reads one stream; that its methods are told which is for queries that read several. Not safe
    for use by several threads at once.
    """

    def __init__(
        self,
        bound: BoundQuery,
        maintainer: Maintainer[ReplicaStore] | None,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        rankers: RankerRegistry = DEFAULT_RANKERS,
        random: np.random.Generator | None = None,
    ) -> None:
        self.name = bound.name
        self.slide_ms = bound.windows.slide_ms
        self._bound = bound
        self._maintainer = maintainer
        self._store = maintainer.store if maintainer else None
        self._clock = clock
        self._wall_clock = wall_clock
        refresh = bound.service.refresh if bound.service else None
        self._refresher = _Refresher(bound, maintainer, rankers, random) if maintainer else None
        self._panes = PaneBuffer(bound.windows)
        self._occupancy = Occupancy(bound.windows)
        self._topkn = _operator(bound, self._store, refresh.n if refresh else 0)
        self._expectation = _expectation(self._topkn, maintainer, bound.plan.offset)
        self._output = RelationToStream(bound.plan.output)
        self._next: int | None = 0 if bound.windows.t0_ms is not None else None
        self._tally = Tally()

    def add(self, stream: str, records: pa.RecordBatch) -> None:
        """Take in a batch of decoded records."""
        self._tally.count(records)
        self._occupancy.add(records)
        late = self._panes.add(self._bound.matcher.match(records))
        self._tally.late += len(late)
        self._topkn.note_late(late)

    def start_after(self, stream: str, time_ms: int) -> None:
        """Answer only for windows that open at a time or after it: earlier ones began without this query."""
        self._next = max(self._bound.windows.last(time_ms) + 1, 0 if self._next is None else self._next)
        self._topkn.close_before(self._next)

    def advance(
        self, stream: str, watermark_ms: int, due_at: float | None = None, longest_wait: float = math.inf
    ) -> Iterator[Answer]:
        """Yield the answers of all windows that close at the watermark or before it, oldest first.

        Call it once all events up to the watermark have been handed in; ``due_at`` is when they
        came, ``longest_wait`` how many seconds each answer may wait for the remote. Windows begin
        with the first that holds an event, matched by the query or not, or with the first after the
        stream's start if that is given. Of a run of more than ``EMPTY_RUN`` windows without events
        at most the first is answered; the others are counted with the next answer.
        """
        due_at = self._clock() if due_at is None else due_at
        if self._next is None:
            earliest = self._occupancy.earliest_ms
            if earliest is None or earliest > watermark_ms:
                return
            self._next = self._bound.windows.first(earliest)
        while self._bound.windows.bounds(self._next)[1] <= watermark_ms:
            if self._skip_empty(watermark_ms):
                continue
            yield self._output(self._evaluate(self._next, due_at, longest_wait))
            self._next += 1
            self._topkn.close_before(self._next)

    def _skip_empty(self, watermark_ms: int) -> bool:
        assert self._next is not None
        if not self._occupancy.is_empty:
            return False
        until, occupied = self._bound.windows.first(watermark_ms + 1), self._occupancy.next
        run = (until if occupied is None else min(until, occupied)) - self._next
        if run <= EMPTY_RUN:
            return False
        self._tally.skipped += run
        self._next += run
        self._topkn.close_before(self._next)
        return True

    def close(self) -> None:
        """Let go of what tells of the remote's changes: the query is over."""
        if self._maintainer is not None:
            self._maintainer.close()

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers of all windows that still hold events, as if time went on after the last of them."""
        last = self._occupancy.last
        if last is not None:
            yield from self.advance(stream, self._bound.windows.bounds(last)[1])

    def _evaluate(self, window: int, due_at: float, longest_wait: float) -> Answer:
        self._occupancy.close(window)
        opens_ms, closes_ms = self._bound.windows.bounds(window)
        for pane in self._panes.take_until(closes_ms):
            self._topkn.add_pane(pane)
            if self._refresher is not None:
                self._refresher.proposer.add_pane(pane)
        self._topkn.settle(window)
        refreshed = self._refresh(window, closes_ms, longest_wait)
        self._topkn.apply_changes(refreshed.changed)
        top = self._topkn.top(window)
        certificate = certify(self._topkn, window, top, None if self._store is None else refreshed.fetched)
        expected = self._expect(top, window) if certificate.status is not Status.EXACT else CERTAIN
        now = self._clock()
        return Answer(
            query=self.name,
            window=window,
            opens_ms=opens_ms,
            closes_ms=closes_ms,
            # What comes before the offset is kept and certified like the rest, but not shown.
            rows=tuple(self._row(top, at, refreshed) for at in range(self._bound.plan.offset, len(top))),
            status=certificate.status,
            reason=certificate.reason,
            bound=None if certificate.bound is None else self._score_of(certificate.bound),
            expected=expected if self._maintainer else None,
            spending=refreshed.spending,
            budget=self._maintainer.budget if self._maintainer else NOTHING,
            refreshed=tuple(to_rdflib(key) for key in sorted(refreshed.fetched)),
            failure=refreshed.failure,
            score_variable=self._bound.plan.score.variable,
            variables=self._bound.plan.projection,
            counts=self._take_counts(window, refreshed),
            latency_seconds=now - due_at,
            emitted_ms=round(1000 * self._wall_clock()),
        )

    def _refresh(self, window: int, closes_ms: int, longest_wait: float) -> Refreshed:
        if self._refresher is None:
            return Refreshed(frozenset(), (), Spending(), 0, None)
        return self._refresher.refresh(self._topkn, window, closes_ms, longest_wait)

    def _expect(self, top: Top, window: int) -> Estimate | None:
        if self._expectation is None or self._maintainer is None:
            return None
        return self._expectation.of(top, self._topkn.content(window), self._maintainer.now())

    def _row(self, top: Top, at: int, refreshed: Refreshed) -> Row:
        key = top.rows.keys[at]
        terms = dict(self._topkn.terms(top.rows, at))
        if self._store is not None:
            remote = ((name, self._store.term(name, key)) for name in self._store.variables)
            terms.update((name, term) for name, term in remote if term is not None and name not in terms)
        score = self._score_of(float(top.merits[at]))
        bindings = {name: self._term(name, terms, score) for name in self._bound.plan.projection}
        return Row(
            rank=at - self._bound.plan.offset + 1,
            bindings={name: term for name, term in bindings.items() if term is not None},
            score=score,
            refreshed=key in refreshed.fetched if self._store is not None else None,
            age_seconds=self._age(key),
        )

    def _score_of(self, merit: float) -> float:
        # Adding zero turns -0.0, which negation can leave, into 0.0.
        return (merit if self._bound.plan.score.descending else -merit) + 0.0

    def _age(self, key: str) -> float | None:
        if self._maintainer is None or self._store is None:
            return None
        return max(0.0, self._maintainer.now() - float(self._store.fetched_at(self._store.rows([key]))[0]))

    def _term(self, name: str, terms: Mapping[str, str], score: float) -> Identifier | None:
        if name == self._bound.plan.score.variable:
            return score_literal(score, self._score_type(terms))
        return to_rdflib(terms[name]) if name in terms else None

    def _score_type(self, terms: Mapping[str, str]) -> str | None:
        """Return the datatype that SPARQL gives a score, from those of the terms behind it."""
        types = {name: datatype for name, term in terms.items() if (datatype := datatype_of(term)) is not None}
        return result_type(self._bound.plan.score.expression, types, self._bound.plan.score.functions)

    def _take_counts(self, window: int, refreshed: Refreshed) -> Counts:
        return self._tally.take(self._topkn.unscored(window), refreshed.ambiguous, refreshed.rejected)


def _expectation(
    operator: TopKOperator, maintainer: Maintainer[ReplicaStore] | None, offset: int
) -> Expectation | None:
    if maintainer is None:
        return None
    model = ChangeModel(maintainer.store.history)
    return Expectation(operator.scoring, maintainer.store, model, k=operator.k, offset=offset)


class _Refresher:
    """A query's replica, and who says what of it to refresh."""

    def __init__(
        self,
        bound: BoundQuery,
        maintainer: Maintainer[ReplicaStore],
        rankers: RankerRegistry,
        random: np.random.Generator | None,
    ) -> None:
        assert bound.service is not None
        refresh = bound.service.refresh
        self.proposer = proposer_of(refresh.policy, maintainer.store)
        self._maintainer = maintainer
        self._order = RefreshOrder(
            maintainer.store,
            rankers[ranker_name(refresh.policy)](),
            slide_ms=bound.windows.slide_ms,
            ask_absent_after=bound.service.ask_absent_after,
            random=random or np.random.default_rng(0),
        )

    def refresh(self, operator: TopKOperator, window: int, closes_ms: int, longest_wait: float) -> Refreshed:
        """Refresh what a window that closes needs most."""
        store, keeper = self._maintainer.store, self._maintainer
        keeper.begin(closes_ms)
        self.proposer.close_before(window)
        limit = keeper.budget.items + keeper.keys_under_way
        wanted = operator.wanted(window, limit, self._order.absent_before(keeper.now()))
        proposed = self.proposer.propose(window, wanted.held)
        keys = self._order(wanted.unknown, proposed, wanted.absent, window=window, k=operator.k, now=keeper.now())
        if store.limit is not None:
            store.touch(store.rows(list(operator.needed())))
        return keeper.fetch(keys, longest_wait)


def _operator(bound: BoundQuery, store: ReplicaStore | None, n: int) -> TopKOperator:
    """Return what keeps a query's candidates."""
    plan = bound.plan
    if plan.aggregate is None:
        return TopKN(plan, store, bound.windows, n=n, refill=bound.refills)
    datatypes = {each.of: bound.matcher.datatype(each.of) for each in plan.aggregate.columns if each.of is not None}
    latest_only = bound.stream.arrivals == "latest"
    return Aggregated(plan, store, bound.windows, n=n, latest_only=latest_only, datatypes=datatypes)
