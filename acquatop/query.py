"""One continuous query: events in, an answer out at every window close."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from rdflib.term import Identifier

from acquatop.answer import Answer, Counts, Row
from acquatop.binding import BoundQuery
from acquatop.operators.certify import certify
from acquatop.operators.occupancy import Occupancy
from acquatop.operators.panes import PaneBuffer
from acquatop.operators.relation_to_stream import RelationToStream
from acquatop.operators.topkn import TopKN
from acquatop.tally import Tally
from acquatop.terms import datatype_of, score_literal, to_rdflib
from acquatop.topk.candidate import Candidate
from replica.maintainer import Clock, Maintainer, Refreshed
from replica.rankers import RANKERS, Candidates
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
        maintainer: Maintainer[ReplicaStore],
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self.name = bound.name
        self.slide_ms = bound.windows.slide_ms
        self._bound = bound
        self._maintainer = maintainer
        self._store = maintainer.store
        self._clock = clock
        self._wall_clock = wall_clock
        self._rank = RANKERS[bound.service.refresh.policy.partition("-")[2]]
        self._panes = PaneBuffer(bound.windows)
        self._occupancy = Occupancy(bound.windows)
        self._topkn = TopKN(bound.plan, maintainer.store, bound.service.refresh.n, bound.windows)
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
        refreshed = self._maintainer.refresh(self._keys_to_refresh(), longest_wait=longest_wait)
        self._topkn.apply_changes(refreshed.changed)
        top = self._topkn.list.top(window)
        status, reason = certify(self._topkn, self._store, window, top, refreshed.fetched)
        # What comes before the offset is kept and certified like the rest, but not shown.
        shown = top[self._bound.plan.offset :]
        now = self._clock()
        return Answer(
            query=self.name,
            window=window,
            opens_ms=opens_ms,
            closes_ms=closes_ms,
            rows=tuple(self._row(rank, each, refreshed, now) for rank, each in enumerate(shown, start=1)),
            status=status,
            reason=reason,
            spending=refreshed.spending,
            budget=self._maintainer.budget,
            refreshed=tuple(to_rdflib(key) for key in sorted(refreshed.fetched)),
            failure=refreshed.failure,
            score_variable=self._bound.plan.score.variable,
            variables=self._bound.plan.projection,
            counts=self._take_counts(window, refreshed),
            latency_seconds=now - due_at,
            emitted_ms=round(1000 * self._wall_clock()),
        )

    def _keys_to_refresh(self) -> list[str]:
        """Return the candidates' keys in the order in which to ask: those without any value come first.

        Keys that the remote is known not to have are asked again last, when there is budget left.
        """
        waiting = list(self._topkn.waiting.values())
        if waiting:
            order = np.argsort(-self._topkn.expected(waiting), kind="stable")
            waiting = [waiting[at] for at in order]
        known = self._store.rows([each.key for each in waiting]) >= 0
        unknown = [each.key for each, is_known in zip(waiting, known, strict=True) if not is_known]
        absent = [each.key for each, is_known in zip(waiting, known, strict=True) if is_known]
        listed = tuple(dict.fromkeys(each.key for each in self._topkn.list))
        fetched_at = self._store.fetched_at(self._store.rows(listed))
        order = self._rank(Candidates(listed, fetched_at, self._topkn.list.k))
        return list(dict.fromkeys([*unknown, *(listed[at] for at in order), *absent]))

    def _row(self, rank: int, candidate: Candidate, refreshed: Refreshed, now: float) -> Row:
        # Adding zero turns -0.0, which negation can leave, into 0.0.
        score = (candidate.merit if self._bound.plan.score.descending else -candidate.merit) + 0.0
        bindings = {name: self._term(name, candidate, score) for name in self._bound.plan.projection}
        fetched_at = float(self._store.fetched_at(self._store.rows([candidate.key]))[0])
        return Row(
            rank=rank,
            bindings={name: term for name, term in bindings.items() if term is not None},
            score=score,
            refreshed=candidate.key in refreshed.fetched,
            age_seconds=max(0.0, now - fetched_at),
        )

    def _term(self, name: str, candidate: Candidate, score: float) -> Identifier | None:
        plan = self._bound.plan
        if name == plan.score.variable:
            return score_literal(score, self._score_type(candidate))
        if name in plan.stream_variables:
            return to_rdflib(candidate.terms[plan.stream_variables.index(name)])
        text = self._store.term(name, candidate.key) if name in self._store.variables else None
        return None if text is None else to_rdflib(text)

    def _score_type(self, candidate: Candidate) -> str | None:
        """Return the datatype that SPARQL gives the candidate's score, from those of the terms behind it."""
        plan = self._bound.plan
        terms = dict(zip(plan.stream_variables, candidate.terms, strict=True))
        remote = ((name, self._store.term(name, candidate.key)) for name in plan.score.remote_variables)
        terms.update((name, term) for name, term in remote if term is not None)
        types = {name: datatype for name, term in terms.items() if (datatype := datatype_of(term)) is not None}
        return result_type(plan.score.expression, types, plan.score.functions)

    def _take_counts(self, window: int, refreshed: Refreshed) -> Counts:
        unscored = sum(each.covers(window) for each in self._topkn.waiting.values())
        return self._tally.take(unscored, refreshed.ambiguous)
