"""Evaluation of a top-k query whose window moves with the elements of its stream, one by one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from rdflib.term import Identifier

from acquatop.answer.answer import Answer, Counts, Row, Status
from acquatop.answer.assembly import Assembly, ClosedWindow
from acquatop.answer.certificate import Certificate
from acquatop.catalog.vocabulary import Strategy
from acquatop.ingest.capacity import beyond
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.ingest.reduce.solutions import Solutions, solutions_in
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.ingest.solution_columns import number_column
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.plugins import STRATEGIES
from acquatop.query.contract import Sizes, Tick
from acquatop.query.exactness import NOT_EXACT, Exactness
from acquatop.query.formed import formed
from acquatop.query.schedule.every_position import EveryPosition
from acquatop.query.shown_rows import RankedSolution, ShownRows
from acquatop.query.solution_terms import SolutionTerms
from acquatop.topk.contract import AnyArray, IntArray
from acquatop.topk.sliding.contract import NONE, Changes
from acquatop.topk.sliding.with_window import Doubtful, WindowKeeper, open_elements
from acquatop.topk.snapshot import (
    State,
    pack,
    pack_parts,
    pack_table,
    reading,
    unpack,
    unpack_parts,
    unpack_table,
)
from connectors.mapping import TIME
from replica.clocks import Clock

_KIND, _VERSION = "every element", 1
_EXACT = Certificate(Status.EXACT)


class PerElementEvaluation:
    """Best of the last n elements, kept as they change with each; times are positions, from 1.

    By the default ``strategy`` an element costs some nanoseconds. If it changes the best, it also
    costs the ranking of k rows; if a window closes with it, an answer. RSTREAM answers every
    window, ISTREAM and DSTREAM only changes. Arrivals must be distinct, and the query must ask no
    remote. Memory grows with n, 8 bytes each, and with the solutions that may still be among the
    best. Not thread-safe.
    """

    def __init__(
        self,
        bound: BoundQuery,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        instant: Callable[[int], int] = int,
        strategy: str = Strategy.BLOCKS,
    ) -> None:
        self._bound = bound
        self._strategy = STRATEGIES[strategy]
        self._schedule = EveryPosition(bound.windows)
        self.slide_ms = bound.windows.slide_ms
        self._clock = clock
        self._k = bound.plan.k + bound.plan.offset
        self._scoring = ReplicaScoring(bound.plan.score, None)
        self._rendering = ShownRows(bound.plan)
        self._instant = instant
        self._assembly = Assembly(
            bound.name,
            bound.plan.output,
            score_variable=bound.plan.score.variable,
            clock=clock,
            wall_clock=wall_clock,
        )
        self._skyline = self._empty()
        self._base = 1
        """Position of the first element that the skyline has seen."""
        self._terms = SolutionTerms(bound.plan.stream_variables)
        self._changes: deque[tuple[int, int, float, int]] = deque()
        """Unanswered changes of the best: (after element, entered, its merit, left)."""
        self._best: dict[int, float] = {}
        self._solutions: dict[int, tuple[Mapping[str, Identifier], float]] = {}
        """Bindings shown for each of the best, and its score."""
        self._shown: tuple[Row, ...] | None = None
        self._unscored: IntArray = np.empty(0, dtype=np.int64)
        self._capacity = Exactness(bound.plan.score, None).capacity
        self._inexact: IntArray = np.empty(0, dtype=np.int64)
        """Positions of elements whose scores may lack digits."""
        self._doubts: dict[int, float] = {}
        """Best merit of what may be missing, by the close of a window with an uncertain answer."""
        self._has_resumed = False

    def _empty(self) -> WindowKeeper:
        windows, error = self._bound.windows, self._bound.stream.approximate
        return open_elements(self._strategy, self._k, windows.width_ms, error, windows.slide_ms)

    @property
    def names(self) -> Sequence[str]:
        """Name of the query."""
        return [self._bound.name]

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Do nothing: the evaluation begins with its first element."""

    def resume_query(self, bound: Bound) -> bool:
        """Continue the query of the snapshot."""
        return self._has_resumed

    def leave(self, name: str) -> None:
        """Do nothing: the evaluation is closed with its only query."""

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows over positions, and how far they are answered."""
        return self._schedule.windows(stream)

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the position at which the next window closes."""
        return self._schedule.due_after(stream, time_ms)

    def close(self) -> None:
        """Do nothing: there are no other resources."""

    def sizes(self, name: str) -> Sizes:
        """Return the number of solutions that are held."""
        return Sizes(len(self._terms))

    # Elements in ----------------------------------------------------------------------------------

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return the reducer that keeps the pattern's solutions."""
        return [Solutions(self._bound.matcher, None)]

    def reducers_ahead(self, stream: str, watermark_ms: int) -> Sequence[Reducer]:
        """Return the same."""
        return self.reducers(stream)

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Add the next elements; those that are no solutions have a place in the window, too."""
        facts = parts[0].facts
        solutions = solutions_in(self._bound.matcher, parts[0].table)
        assert facts.earliest_ms is not None, "an element has a position"
        positions = np.asarray(solutions.column(TIME).to_numpy())
        numbers = tuple(
            solutions.column(number_column(name)).to_numpy()
            for name in self._scoring.stream_variables
        )
        scored = self._scoring.merits(positions, numbers)
        merits = np.full(facts.events, np.nan)
        merits[positions - facts.earliest_ms] = scored
        self._note(self._skyline.add(merits))
        if isinstance(self._skyline, Doubtful):
            self._doubts |= {at + self._base: bar for at, bar in self._skyline.take_doubts()}
        self._terms.add(solutions)
        self._unscored = np.concatenate((self._unscored, positions[np.isnan(scored)]))
        inexact = beyond(self._bound.plan.score, self._capacity, numbers)
        if inexact is not None:
            self._inexact = np.concatenate((self._inexact, positions[inexact]))

    def _note(self, changes: Changes) -> None:
        entered, left = (
            np.where(each == NONE, NONE, each + self._base)
            for each in (changes.entered, changes.left)
        )
        columns = (changes.after + self._base, entered, changes.merits, left)
        self._changes.extend(zip(*(each.tolist() for each in columns), strict=True))

    # Answers out ----------------------------------------------------------------------------------

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield nothing: no element closes a window that is not full."""
        return iter(())

    def advance(self, tick: Tick) -> Iterator[Answer]:
        """Yield the answers of all windows that close up to a position, oldest first."""
        for window in self._windows_to_answer(self._schedule.due(tick.watermark_ms)):
            opens, closes = self._bound.windows.bounds(window)
            has_changed = self._has_changed(closes) or self._rendering.depend_on_time
            if has_changed or self._shown is None:
                self._shown = tuple(self._rows(self._instant(closes)))
            closed = ClosedWindow(window, opens, closes, tick.due_at)
            result = formed(self._bound.plan, self._shown)
            counts = Counts(unscored=_count_between(self._unscored, opens, closes))
            is_exact = not _count_between(self._inexact, opens, closes)
            certificate = self._certificate(closes) if is_exact else NOT_EXACT
            yield self._assembly.answer(closed, result, certificate, counts)
        opens = self._schedule.next_open_ms
        gone = int(np.searchsorted(self._unscored, opens, side="right"))
        self._unscored = self._unscored[gone:]
        self._inexact = self._inexact[np.searchsorted(self._inexact, opens, side="right") :]
        self._terms.trim(lambda: self._skyline.held() + self._base)

    def _certificate(self, closes: int) -> Certificate:
        """Return the certificate of a window's answer, given that its scores are exact."""
        bar = self._doubts.pop(closes, None)
        if bar is None:
            return _EXACT
        reason = f"by chance a result is missing, as in at most {self._error:g} of the answers"
        return Certificate(Status.PROBABILISTIC, reason, self._rendering.score_of(bar))

    @property
    def _error(self) -> float:
        return self._bound.stream.approximate or 0.0

    def _windows_to_answer(self, due: Iterable[range]) -> Iterator[int]:
        """Yield the windows to answer of those that are due: all, or those with changes."""
        for windows in due:
            if self._bound.plan.output == "RSTREAM":
                yield from windows
            else:
                moments = np.array([after for after, *_ in self._changes], dtype=np.int64)
                changed = np.unique(self._bound.windows.spans(moments)[0])
                yield from changed[changed < windows.stop].tolist()

    def _has_changed(self, closes: int) -> bool:
        """Update the best to those of a window; return True if they have changed."""
        has_changed = False
        while self._changes and self._changes[0][0] <= closes:
            _, entered, merit, left = self._changes.popleft()
            if left != NONE:
                del self._best[left]
            if entered != NONE:
                self._best[entered] = merit
            has_changed = True
        return has_changed

    def _rows(self, at_ms: int) -> Iterator[Row]:
        """Yield the best, without those before the offset."""
        ranked = sorted(self._best.items(), key=lambda each: (each[1], each[0]), reverse=True)
        known = {} if self._rendering.depend_on_time else self._solutions
        missing = [
            (position, self._rendering.score_of(merit))
            for position, merit in ranked
            if position not in known
        ]
        solutions = [
            RankedSolution(self._terms.terms(position), score) for position, score in missing
        ]
        made = zip(missing, self._rendering.bindings(solutions, at_ms), strict=True)
        found = {position: (bindings, score) for (position, score), bindings in made}
        self._solutions = {
            position: found.get(position) or known[position] for position, _ in ranked
        }
        for rank, (position, _) in enumerate(ranked[self._bound.plan.offset :], start=1):
            bindings, score = self._solutions[position]
            yield Row(rank, bindings, score, None, None)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    def snapshot(self) -> bytes:
        """Return the whole state. O(n)."""
        skyline = self._skyline
        settings = {"next": self._schedule.next, "count": self._base + skyline.position - 1}
        after, entered, merits, left = (
            zip(*self._changes, strict=True) if self._changes else ((), (), (), ())
        )
        tables: dict[str, dict[str, AnyArray]] = {
            "window": {"merits": skyline.window()[skyline.n - len(skyline) :]},
            "unscored": {"positions": self._unscored},
            "inexact": {"positions": self._inexact},
            "doubts": {
                "closes": _whole(self._doubts),
                "bounds": np.array([*self._doubts.values()], dtype=np.float64),
            },
            "best": {
                "positions": _whole(self._best),
                "merits": np.array([*self._best.values()], dtype=np.float64),
            },
            "changes": {
                "after": _whole(after),
                "entered": _whole(entered),
                "merits": np.array(merits, dtype=np.float64),
                "left": _whole(left),
            },
        }
        parts = {
            "state": pack(_KIND, _VERSION, State(settings, tables)),
            "output": self._assembly.snapshot(),
        }
        if isinstance(skyline, Doubtful):
            parts["structure"] = skyline.snapshot()
        return pack_parts(
            {**parts, "held": pack_table(self._terms.table())} if len(self._terms) else parts
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot of the same query; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            state = unpack(_KIND, _VERSION, parts["state"])
            merits, best = state.tables["window"]["merits"], state.tables["best"]
            self._schedule.resume(state.settings["next"])
            self._base = state.settings["count"] + 1 - len(merits)
            self._skyline = self._empty()
            if isinstance(self._skyline, Doubtful):
                self._skyline.resume(parts["structure"])
                self._base = 1
            else:
                self._skyline.add(merits)
            doubts = state.tables.get("doubts")
            if doubts is not None:
                pairs = zip(doubts["closes"].tolist(), doubts["bounds"].tolist(), strict=True)
                self._doubts = dict(pairs)
            self._unscored = state.tables["unscored"]["positions"]
            self._inexact = state.tables.get("inexact", {}).get("positions", self._inexact)
            self._best = dict(zip(best["positions"].tolist(), best["merits"].tolist(), strict=True))
            columns = (
                state.tables["changes"][name].tolist()
                for name in ("after", "entered", "merits", "left")
            )
            self._changes = deque(zip(*columns, strict=True))
            if "held" in parts:
                self._terms.resume(unpack_table(parts["held"]))
            self._assembly.resume(parts["output"])
        self._has_resumed = True


def _count_between(positions: IntArray, opens: int, closes: int) -> int:
    """Return the number of positions in a window."""
    after, until = np.searchsorted(positions, (opens, closes), side="right").tolist()
    return int(until - after)


def _whole(numbers: Iterable[int]) -> IntArray:
    return np.array([*numbers], dtype=np.int64)
