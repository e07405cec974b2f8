"""Member of an evaluation: one query's ranking of the windows' content, and its answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Generic, TypeVar

from acquatop.answer.answer import Answer, Counts, Row, Shown
from acquatop.answer.assembly import Assembly, ClosedWindow, RemoteUse
from acquatop.answer.certificate import Certificate
from acquatop.answer.render import Bindings
from acquatop.ingest.terms import number_of_term, to_rdflib
from acquatop.plan.bound import BoundQuery
from acquatop.query.evidence import EvidenceLog
from acquatop.query.exactness import Exactness
from acquatop.query.finishing import Finished, Finishing, Unlimited
from acquatop.query.formed import formed
from acquatop.query.joined_top import JoinedTop
from acquatop.query.ranking import Ranked
from acquatop.query.replica_facts import NoRemoteFacts, RemoteFacts
from acquatop.query.shown_rows import RankedSolution, ShownRows
from acquatop.refresh.replica_refresh import NOTHING_REFRESHED
from acquatop.topk.contract import Rows
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.clocks import Clock
from replica.maintainer import Refreshed
from rspql.plan import TopKPlan

_SHOWN = 1 << 16
"""Number of solutions whose bindings are remembered."""

OperatorT = TypeVar("OperatorT", bound=Ranked)


class ShownBindings(dict[str, Bindings]):
    """Bindings that solutions were shown with, by key. Shared by members that show the same."""

    def __init__(self, room: int = _SHOWN) -> None:
        super().__init__()
        self._room = room

    def remember(self, key: str, bindings: Bindings) -> None:
        """Keep the bindings of a solution; forget all when there are too many."""
        if len(self) >= self._room:
            self.clear()
        self[key] = bindings


class Forgetful(ShownBindings):
    """Bindings of solutions that may change: nothing is remembered."""

    def remember(self, key: str, bindings: Bindings) -> None:
        """Do nothing."""


class _JoinedRanking:
    """Ranking that holds all solutions, as the results that they are part of."""

    def __init__(self, ranking: Unlimited, facts: RemoteFacts) -> None:
        self._ranking = ranking
        self._facts = facts

    def best(self, window: int, count: int) -> JoinedTop:
        """Return the best ``count`` results of a window at least, and all that tie with the last.

        All have at least the merit of the last solution: others may have better results than those
        below.
        """
        top = self._ranking.best(window, count)
        least = float(top.merits[-1]) if len(top) >= count else -math.inf
        return self._facts.joined(top, least=least)

    def best_of_groups(self, window: int, count: int, per: Sequence[str]) -> JoinedTop | None:
        """Return the best ``count`` results of each group at least, and all that tie."""
        top = self._ranking.best_of_groups(window, count, per)
        return None if top is None else self._facts.joined(top)

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return the terms of a variable of the stream; None for others."""
        return self._ranking.column(rows, name)


class Member(Generic[OperatorT]):
    """Query that answers windows from ``since`` on.

    Give ``shown`` only if the bindings of a solution never change. NOW() is the ``instant`` of a
    close.
    """

    def __init__(
        self,
        bound: BoundQuery,
        operator: OperatorT,
        *,
        clock: Clock,
        wall_clock: Clock,
        facts: RemoteFacts | None = None,
        since: int | None = None,
        shown: ShownBindings | None = None,
        instant: Callable[[int], int] = int,
    ) -> None:
        self.bound = bound
        self.operator = operator
        self.since = since
        self._facts: RemoteFacts = facts or NoRemoteFacts()
        self._rendering = ShownRows(bound.plan)
        self._finishing = (
            None if bound.plan.finish is None else Finishing(bound.plan, self._rendering)
        )
        self._instant = instant
        is_fixed = not self._rendering.depend_on_time
        self._shown = shown if shown is not None and is_fixed else Forgetful()
        self._exactness = Exactness(bound.plan.score, self._facts.values)
        score = bound.plan.score
        # Evidence is kept with answers, which may outlive their query: it holds no member.
        self._evidence = EvidenceLog(
            bound.plan, partial(_plain_score, bound.plan, self._rendering.score_of)
        )
        self._score_variable = (
            bound.plan.windowed.score_variable if score.only_place else score.variable
        )
        self._assembly = Assembly(
            bound.name,
            bound.plan.output,
            score_variable=self._score_variable,
            clock=clock,
            wall_clock=wall_clock,
        )

    def rank_by(self, operator: OperatorT, facts: RemoteFacts) -> None:
        """Go on with another ranking of the same content."""
        self.operator = operator
        self._facts = facts
        self._exactness = Exactness(self.bound.plan.score, facts.values)

    def score_of(self, merit: float) -> float:
        """Return the score of a merit."""
        return self._rendering.score_of(merit)

    def has_begun(self, window: int) -> bool:
        """Return True if the query answers a window."""
        return self.since is None or self.since <= window

    def best(self, window: int) -> JoinedTop:
        """Return a window's best results by the score alone, those before the offset included."""
        return self._facts.joined(self.operator.top(window), most=self.operator.k)

    def answer(
        self,
        closed: ClosedWindow,
        counts: Counts,
        refreshed: Refreshed = NOTHING_REFRESHED,
        windows: tuple[Shown, ...] = (),
    ) -> Answer:
        """Return the answer of a window that has closed, after all changes were applied.

        ``windows`` are those that are shown, if several are joined.
        """
        window, fetched = closed.window, refreshed.fetched
        at_ms = self._instant(closed.closes_ms)
        finished = self._finished(window, at_ms) or self._shown_best(window, at_ms)
        top = finished.top
        certificate = self._exactness.checked(
            self._facts.certify(window, top, refreshed), self.operator.extents(window)
        )
        expected = None
        if self._finishing is None or self._finishing.is_estimated:
            expected = self._facts.expect(window, top, certificate.status)
        result = formed(self.bound.plan, tuple(self._rows(finished, fetched)))
        result = replace(result, windows=windows) if windows else result
        use = RemoteUse(
            tuple(to_rdflib(key) for key in sorted(refreshed.keys)),
            refreshed.spending,
            self._facts.budget,
            refreshed.failure,
            None if self.bound.service is None else self.bound.service.refresh.target,
        )
        return self._assembly.answer(
            closed,
            result,
            self._shown_as(certificate),
            counts,
            use,
            expected=expected,
            evidence=self._evidence.note(
                window, top, finished.offset, self.operator, self._facts, fetched
            ),
        )

    def _shown_as(self, certificate: Certificate) -> Certificate:
        """Return a certificate with a score as its bound, in place of a merit."""
        if certificate.bound is None:
            return certificate
        # Anything could be better than terms whose places tie.
        bound = math.inf if self.bound.plan.score.only_place else certificate.bound
        return Certificate(certificate.status, certificate.reason, self._rendering.score_of(bound))

    def _finished(self, window: int, at_ms: int) -> Finished | None:
        """Return a window's results if the best by the score are not yet these."""
        if self._finishing is None:
            return None
        ranking: Any = self.operator  # it holds all solutions
        return self._finishing.of(
            _JoinedRanking(ranking, self._facts), window, self._solutions, at_ms
        )

    def _shown_best(self, window: int, at_ms: int) -> Finished:
        """Return a window's best results by the score."""
        joined = self.best(window)
        return Finished(joined, self._bindings(joined, at_ms), self.bound.plan.offset)

    def _rows(self, finished: Finished, fetched: frozenset[str]) -> Iterator[Row]:
        """Yield the results after the offset.

        Those before it are held and certified like the rest.
        """
        top, offset = finished.top, finished.offset
        keys = top.rows.keys[offset:].tolist()
        scores = map(self._shown_score, top.merits[offset:].tolist(), finished.bindings)
        columns = zip(keys, scores, finished.bindings, self._facts.ages(keys), strict=True)
        for rank, (key, score, shown, age) in enumerate(columns, start=1):
            yield Row(rank, shown, score, self._facts.was_refreshed(key, fetched), age)

    def _shown_score(self, merit: float, shown: Bindings) -> float | None:
        """Return the score of a merit; None if it stands for a term that is no number."""
        score = self.bound.plan.score
        if score.only_place:
            return number_of_term(shown.get(self._score_variable or ""))
        if score.orders_terms and math.isinf(merit):
            return None
        return self._rendering.score_of(merit)

    def _bindings(self, top: JoinedTop, at_ms: int) -> list[Bindings]:
        """Return what the results after the offset show."""
        offset = self.bound.plan.offset
        keys = top.rows.keys[offset:].tolist()
        found = [self._shown.get(key) for key in keys]
        missing = [at for at, shown in enumerate(found) if shown is None]
        solutions = self._solutions(top, [offset + at for at in missing])
        made = self._rendering.bindings(solutions, at_ms)
        for at, shown in zip(missing, made, strict=True):
            found[at] = shown
            self._shown.remember(keys[at], shown)
        return [shown for shown in found if shown is not None]

    def _solutions(self, top: JoinedTop, at: Sequence[int] | None = None) -> list[RankedSolution]:
        """Return some of the best, or all, with their terms and scores."""
        at = range(len(top)) if at is None else at
        return [
            RankedSolution(
                {**top.terms[each], **self.operator.terms(top.rows, each)},
                self._rendering.score_of(float(top.merits[each])),
                self.operator.ratios(top.rows, each),
            )
            for each in at
        ]

    def output_snapshot(self) -> bytes:
        """Return the state of the answers alone, if the ranking is made anew at each close."""
        return self._assembly.snapshot()

    def resume_output(self, snapshot: bytes) -> None:
        """Restore the state of the answers alone."""
        self._assembly.resume(snapshot)

    def snapshot(self) -> bytes:
        """Return the query's own state."""
        since = "" if self.since is None else str(self.since)
        parts = {
            "since": since.encode(),
            "output": self._assembly.snapshot(),
            "operator": self.operator.snapshot(),
        }
        return pack_parts(parts)

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot."""
        parts = unpack_parts(snapshot)
        self.since = int(parts["since"]) if parts["since"] else None
        self._assembly.resume(parts["output"])
        self.operator.resume(parts.get("operator", b""))


def _plain_score(plan: TopKPlan, score_of: Callable[[float], float], merit: float) -> float | None:
    """Return the score of a merit; None if scores are no numbers, but places in an order."""
    is_term = plan.score.only_place or (plan.score.orders_terms and math.isinf(merit))
    return None if is_term else score_of(merit)
