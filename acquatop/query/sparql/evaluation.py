"""Evaluation of one query at every close of its windows, by a SPARQL engine over their content."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial

import numpy as np
from pyoxigraph import Literal

from acquatop.answer.answer import Answer, Row, Shown, Status
from acquatop.answer.assembly import Assembly, ClosedWindow, RemoteUse, Result
from acquatop.answer.certificate import Certificate
from acquatop.answer.unanswered import Unanswered
from acquatop.catalog.evaluation_limits import DEFAULT_LIMITS
from acquatop.errors import EvaluationError, EvaluationLost
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.ingest.reduce.records import RECORDS
from acquatop.ingest.terms import to_rdflib
from acquatop.plan.bound import Bound, BoundWindowed
from acquatop.plugins import RANKERS
from acquatop.query.contract import Sizes, Tick
from acquatop.query.schedule.several_streams import SeveralStreams
from acquatop.query.schedule.windows import Due
from acquatop.query.sparql.computed import computed_functions
from acquatop.query.sparql.engine import LocalEngine
from acquatop.query.sparql.evaluate import Evaluator
from acquatop.query.sparql.evaluate import SparqlResult as Found
from acquatop.query.sparql.evidence import WholeEvidenceLog, WholeQuery
from acquatop.query.sparql.functions import called_functions
from acquatop.query.sparql.quad_store import OpenEngine, QuadStore
from acquatop.query.sparql.shown_terms import rdflib_of
from acquatop.query.sparql.terms import Solution, Term, text_of
from acquatop.query.sparql.window_graph import WindowGraph
from acquatop.query.stream_history import StreamHistory
from acquatop.refresh.flow import order_of
from acquatop.refresh.lanes import Lanes
from acquatop.refresh.order import RefreshOrder
from acquatop.refresh.remote_past import PAST_SEEN
from acquatop.refresh.service_join import ReplicaJoin
from acquatop.refresh.service_refresh import RefreshResult, ServiceAnswers, ServiceRefresh
from acquatop.topk.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts
from replica.clocks import Clock
from replica.maintainer import Maintainer
from replica.rankers import RankerRegistry
from replica.store import WHOLE, SolutionStore
from replica.terms import is_term
from rspql.ast import Values
from rspql.plan import CountWindow, RemotePart, StreamPast

_KIND, _VERSION = "windowed query", 1
_MOST_TRIPLES = 20_000
"""Number of triples of windows up to which they are kept for explanations of the last answers."""


class SparqlEvaluation:
    """Query that is evaluated over whole windows.

    An answer is due whenever a window closes. Each window then shows its content at its own last
    close; before its first close it shows nothing. Time is that of the slowest stream; a stream
    that has ended does not hold up others. ``maintainers`` are those of the plan's remotes, in its
    order; ``services`` answer in their place. NOW() is the ``instant`` of a close.

    An answer is *exact* if nothing was late and all keys that it needs were fetched in this
    evaluation, *certified* if some were fetched before, *approximate* if some never were or
    something was late. A window whose evaluation is lost has no answer; ``failures`` of them in a
    row end the query.

    Not thread-safe.
    """

    def __init__(
        self,
        bound: BoundWindowed,
        maintainers: Sequence[Maintainer[SolutionStore]] = (),
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        rankers: RankerRegistry = RANKERS,
        random: np.random.Generator | None = None,
        instant: Callable[[int], int] = int,
        open_engine: OpenEngine = LocalEngine,
        services: ServiceAnswers | None = None,
        lanes: Lanes | None = None,
        failures: int = DEFAULT_LIMITS.failures,
    ) -> None:
        self.name = bound.name
        self.names: Sequence[str] = [bound.name]
        self.slide_ms = min((window.windows.slide_ms for window in bound.windows), default=0)
        self.lanes = lanes or Lanes()
        self._bound = bound
        self._clock = clock
        self._instant = instant
        plan = bound.plan.evaluated
        functions = {
            **called_functions(plan.query, plan.functions),
            **computed_functions(plan.computed, plan.functions),
        }
        self._store = store = QuadStore(bound.graphs, functions, open_engine)
        self._graphs = [_graph(store, bound, number) for number in range(len(bound.windows))]
        windows = [graph.name for graph in self._graphs]
        try:
            self._evaluator = Evaluator(
                plan.query, store.engine, windows=windows, remotes=(*plan.remotes, *plan.before)
            )
        except BaseException:
            store.close()  # its engine may run already
            raise
        self._services: ServiceAnswers
        if services is not None:
            self._services = services
        else:
            joins = _joins(
                bound, maintainers, rankers, random or np.random.default_rng(0), _slide_of(bound)
            )
            self._services = ServiceRefresh(
                [*joins],
                self._evaluator.keys,
                clock,
                lanes=self.lanes.by_service,
                query=bound.name,
                weight=bound.weight,
            )
        remotes: Sequence[RemotePart | StreamPast] = (*plan.remotes, *plan.before)
        self._evidence = WholeEvidenceLog(
            WholeQuery(
                plan.query,
                windows,
                remotes,
                functions,
                open_engine,
                # Answers keep it, and may outlive the evaluation.
                partial(_score, bound.plan.score_variable or ""),
            )
        )
        self._assembly = Assembly(
            bound.name,
            bound.plan.output,
            score_variable=bound.plan.score_variable,
            clock=clock,
            wall_clock=wall_clock,
        )
        self._schedule = SeveralStreams(
            self._graphs, [window.stream.iri for window in bound.windows]
        )
        self._histories = [StreamHistory(each) for each in plan.before]
        self._results: dict[str, list[str]] = {}
        self._is_resumed = False
        self._offered: Due | None = None
        """Windows whose needs have been offered to others with the same budget."""
        self._failures = failures
        self._losses: list[EvaluationLost] = []
        """Number of answers lost in a row."""

    # Queries come and go --------------------------------------------------------------------------

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Start the query; show only windows that open after the given times of streams."""
        self._schedule.start_after(after_ms)

    def resume_query(self, bound: Bound) -> bool:
        """Continue the query of the snapshot."""
        return self._is_resumed

    def leave(self, name: str) -> None:
        """Do nothing: the evaluation is closed with its only query."""

    # Records in -----------------------------------------------------------------------------------

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return the reducer that keeps all records."""
        return [RECORDS]

    def reducers_ahead(self, stream: str, watermark_ms: int) -> Sequence[Reducer]:
        """Return the same."""
        return self.reducers(stream)

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Take in one partition's records."""
        for records in parts[0].table.to_batches():
            self._schedule.counters.count(records)
            # A record that is late for one window is late for all that have closed since.
            graphs = (self._graphs[at] for at in self._schedule.positions(stream))
            late = max((graph.add(records) for graph in graphs), default=0)
            self._schedule.counters.late += late
            for history in self._histories if late else ():
                history.doubt()

    # Answers out ----------------------------------------------------------------------------------

    def advance(self, tick: Tick) -> Iterator[Answer | Unanswered]:
        """Yield the answers that are due, oldest first; time is that of the slowest stream."""
        time_ms = self._schedule.reach(tick.stream, tick.watermark_ms)
        yield from self._answers(time_ms, tick.due_at, tick.longest_wait)

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the close of the next window on a stream."""
        return self._schedule.due_after(stream, time_ms)

    def close(self) -> None:
        """Close the feeds of the remotes' changes: the query is over."""
        self._store.close()
        self.lanes.close()
        for join in self._services.joins:
            join.flow.maintainer.close()

    def finish(self, stream: str) -> Iterator[Answer | Unanswered]:
        """Yield the answers that are due when a stream ends.

        When the last stream ends, these are the answers of all windows that close by the time of
        the stream that got furthest, or that still hold events, as if time went on.
        """
        yield from self._answers(self._schedule.end(stream), self._clock(), math.inf)

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows on a stream, and how far each are answered."""
        return self._schedule.windows(stream)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state: windows, replicas, spending, and the last output.

        Requests under way are not part of it: their keys may be asked for again.
        """
        settings = {**self._schedule.settings(), "results": self._results}
        return pack_parts(
            {
                "state": pack(_KIND, _VERSION, State(settings, {})),
                "store": self._store.snapshot(),
                **{f"graph{at}": graph.snapshot() for at, graph in enumerate(self._graphs)},
                "remotes": self._services.snapshot(),
                "output": self._assembly.snapshot(),
                "tally": self._schedule.counters.snapshot(),
                **{f"past{at}": each.snapshot() for at, each in enumerate(self._histories)},
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot of the same query; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            settings = unpack(_KIND, _VERSION, parts["state"]).settings
            self._schedule.counters.resume(parts["tally"])
            self._assembly.resume(parts["output"])
            for at, graph in enumerate(self._graphs):
                graph.resume(parts[f"graph{at}"])
            self._store.resume(parts["store"])
            self._services.resume(parts["remotes"])
            self._schedule.resume(settings)
            self._results = settings["results"]
            for at, history in enumerate(self._histories):
                history.resume(parts[f"past{at}"])
        self._is_resumed = True

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    def sizes(self, name: str) -> Sizes:
        """Return zeros: there are no candidates."""
        return Sizes()

    # One answer -----------------------------------------------------------------------------------

    def _answers(
        self, watermark_ms: float, due_at: float, longest_wait: float
    ) -> Iterator[Answer | Unanswered]:
        offered, self._offered = self._offered, None
        if offered is not None:
            yield self._answer(offered, due_at, longest_wait)
            self._check_losses()
        self._schedule.begin(watermark_ms)
        yield from self._due_answers(self._schedule.due(watermark_ms), due_at, longest_wait)

    def _due_answers(
        self, dues: Iterator[Due], due_at: float, longest_wait: float
    ) -> Iterator[Answer | Unanswered]:
        """Yield the answers of what is due."""
        for due in dues:
            self._pass_by(due)
            if not due.is_skipped:
                yield self._answer(due, due_at, longest_wait)
                self._check_losses()

    def _pass_by(self, due: Due) -> None:
        """Let windows show what they hold at a close."""
        closes_ms = [
            self._graphs[at].cursor.windows.bounds(window)[1] for at, window in due.closed.items()
        ]
        for graph in self._graphs:
            graph.pass_by(max(closes_ms, default=due.closes_ms))

    # Budgets shared with others -------------------------------------------------------------------

    def due_by(self, watermark_ms: float) -> int | None:
        """Return the close of the next window, if it is due at a watermark."""
        self._schedule.begin(watermark_ms)
        closes_ms = self._schedule.next_close_ms
        return None if closes_ms is None or closes_ms > watermark_ms else closes_ms

    def last_due_ms(self, stream: str) -> float:
        """Return the time up to which windows are due when the stream ends."""
        return self._schedule.due_at_end(stream)

    def expect(self) -> None:
        """Tell the lanes that the next window is due."""
        self.lanes.expect(self._bound.weight)

    def offer(self, watermark_ms: int) -> None:
        """Tell the lanes what the next window, due at a watermark, wants of the remotes."""
        self._schedule.begin(watermark_ms)
        due = next(self._schedule.due(watermark_ms), None)
        if due is None:
            return
        self._pass_by(due)
        if not due.is_skipped:
            assert isinstance(self._services, ServiceRefresh), "others share no budget"
            self._offered = due
            with suppress(EvaluationLost):  # it is lost again when it is answered
                self._services.offer(self._instant(due.closes_ms), self._results)

    def _answer(self, due: Due, due_at: float, longest_wait: float) -> Answer | Unanswered:
        closing = [self._graphs[at] for at in due.closed]
        shown = [_shown(graph) for graph in (*closing, *self._graphs) if graph.shown is not None]
        closed = ClosedWindow(shown[0].index, shown[0].opens_ms, shown[0].closes_ms, due_at)
        windows = tuple(shown[len(closing) :]) if len(self._graphs) > 1 else ()
        try:
            answer = self._evaluate(due.closes_ms, closed, windows, longest_wait)
        except EvaluationLost as lost:
            for history in self._histories:
                history.lose(due.closes_ms)
            self._losses.append(lost)
            return Unanswered(self.name, closed.opens_ms, closed.closes_ms, lost.reason, str(lost))
        self._losses.clear()
        return answer

    def _check_losses(self) -> None:
        """Raise :class:`~acquatop.errors.EvaluationError` once too many in a row have been told."""
        count = len(self._losses)
        if count >= self._failures:
            lost = self._losses[-1]
            raise EvaluationError(
                f"{count} windows in a row have no answer; of the last one {lost}"
            ) from lost

    def _evaluate(
        self, now_ms: int, closed: ClosedWindow, windows: tuple[Shown, ...], longest_wait: float
    ) -> Answer:
        refresh = self._services.refresh(self._instant(now_ms), self._results, longest_wait)
        before = {
            each.plan.pattern: self._before(each, refresh, now_ms) for each in self._histories
        }
        answers = {**refresh.answers, **before}
        found = self._evaluator.evaluate(answers, self._instant(now_ms))
        self._note_results(found)
        result = Result(
            rows=tuple(
                self._row(rank, row, refresh) for rank, row in enumerate(found.rows, start=1)
            ),
            variables=found.names,
            form=self._evaluator.form,
            boolean=found.boolean,
            triples=found.triples,
            windows=windows,
        )
        use = RemoteUse(
            tuple(map(to_rdflib, refresh.refreshed)),
            refresh.spending,
            self._services.budget,
            refresh.failure,
        )
        counts = self._schedule.counters.take(rejected=refresh.rejected)
        certificate = self._certificate(refresh, now_ms)
        content = self._store.present(_MOST_TRIPLES)
        evidence = self._evidence.note(content, answers, self._instant(now_ms), found.rows)
        return self._assembly.answer(closed, result, certificate, counts, use, evidence=evidence)

    def _before(self, history: StreamHistory, refresh: RefreshResult, now_ms: int) -> Values:
        """Note a window's values in their history, and return those of before."""
        plan = history.plan
        names = (*plan.keys, *history.variables)
        instant = self._instant(now_ms)
        rows = self._evaluator.rows(names, plan.source, refresh.answers, instant)
        rows = [row for row in rows if all(is_term(row.get(key, "")) for key in plan.keys)]
        is_certain = not any(graph.is_uncertain for graph in self._graphs)
        history.note(rows, now_ms, is_certain=is_certain)
        return history.values(rows, now_ms)

    def _certificate(self, refresh: RefreshResult, now_ms: int) -> Certificate:
        if refresh.certificate is not None:
            return refresh.certificate
        reasons = [
            f"{count} of the keys to ask <{service}> for have no answer from it yet"
            for service, count in refresh.missing.items()
            if count
        ]
        reasons += [
            f"{count} of <{service}>'s keys have not been seen for as long as a change looks back"
            for service, count in refresh.without_past.items()
            if count
        ]
        reasons += [said for each in self._histories if (said := each.reason(now_ms))]
        if any(graph.is_uncertain for graph in self._graphs):
            reasons.append("something that belongs into a window came too late")
        if reasons:
            return Certificate(Status.APPROXIMATE, "; ".join(reasons))
        if refresh.looks_back:
            return Certificate(Status.CERTIFIED, PAST_SEEN)
        return Certificate(Status.CERTIFIED if refresh.is_stale else Status.EXACT)

    def _note_results(self, result: Found) -> None:
        """Remember the results' keys, best first, for the ranker, if the query has an order."""
        keys = (
            [join.part.key for join in self._services.joins if join.part.key]
            if self._bound.plan.query.order
            else []
        )
        self._results = {
            key: [text_of(row[key]) for row in result.rows if key in row] for key in keys
        }

    def _row(self, rank: int, solution: Solution, refresh: RefreshResult) -> Row:
        refreshed, age_seconds = self._freshness(solution, refresh)
        return Row(
            rank=rank,
            bindings={name: rdflib_of(term) for name, term in solution.items()},
            score=_score(self._bound.plan.score_variable or "", solution),
            refreshed=refreshed,
            age_seconds=age_seconds,
        )

    def _freshness(
        self, solution: Solution, refresh: RefreshResult
    ) -> tuple[bool | None, float | None]:
        """Return whether all keys of a row were fetched now, and the oldest age.

        None if some are missing.
        """
        joins = self._services.joins
        if not joins or any(
            join.part.key is not None and join.part.key not in solution for join in joins
        ):
            return None, None
        keys = [
            (join, WHOLE if join.part.key is None else text_of(solution[join.part.key]))
            for join in joins
        ]
        age_seconds = max(0.0, *(join.age(key) for join, key in keys))
        return all(
            key in refresh.fetched[join] for join, key in keys
        ), age_seconds if math.isfinite(age_seconds) else None


def _score(variable: str, solution: Mapping[str, Term]) -> float | None:
    term = solution.get(variable)
    try:
        return float(term.value) if isinstance(term, Literal) else None
    except ValueError:
        return None


def _graph(store: QuadStore, bound: BoundWindowed, number: int) -> WindowGraph:
    window = bound.windows[number]
    latest_only = window.stream.arrivals == "latest"
    return WindowGraph(
        store, window.name, window.windows, window.stream.mapping, latest_only=latest_only
    )


def _joins(
    bound: BoundWindowed,
    maintainers: Sequence[Maintainer[SolutionStore]],
    rankers: RankerRegistry,
    random: np.random.Generator,
    slide_ms: int | None,
) -> Iterator[ReplicaJoin]:
    for remote, maintainer in zip(bound.remotes, maintainers, strict=True):
        order = order_of(RefreshOrder, remote.service, maintainer.store, rankers, random, slide_ms)
        yield ReplicaJoin(remote.part, maintainer, order)


def _slide_of(bound: BoundWindowed) -> int | None:
    """Return the time between answers; None if windows count elements."""
    if any(isinstance(each, CountWindow) for each in bound.plan.windows):
        return None
    return min((window.windows.slide_ms for window in bound.windows), default=0)


def _shown(graph: WindowGraph) -> Shown:
    assert graph.shown is not None, "only windows that have closed are shown"
    return Shown(graph.name, graph.shown, *graph.cursor.windows.bounds(graph.shown))
