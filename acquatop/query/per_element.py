"""Evaluation of a top-k query whose window moves with the elements of its stream, one by one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from acquatop.answer.answer import Answer, Status
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
from acquatop.query.element_answers import ElementAnswers, count_between, whole
from acquatop.query.exactness import NOT_EXACT, Exactness
from acquatop.query.solution_terms import SolutionTerms
from acquatop.topk.contract import AnyArray, IntArray
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
        self.slide_ms = bound.windows.slide_ms
        self._k = bound.plan.k + bound.plan.offset
        self._scoring = ReplicaScoring(bound.plan.score, None)
        self._answers = ElementAnswers(
            bound, bound.windows, instant=instant, clock=clock, wall_clock=wall_clock
        )
        self._skyline = self._empty()
        self._base = 1
        """Position of the first element that the skyline has seen."""
        self._terms = SolutionTerms(bound.plan.stream_variables)
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
        return self._answers.schedule.windows(stream)

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the position at which the next window closes."""
        return self._answers.schedule.due_after(stream, time_ms)

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
        self._answers.note(self._skyline.add(merits), self._base)
        if isinstance(self._skyline, Doubtful):
            self._doubts |= {at + self._base: bar for at, bar in self._skyline.take_doubts()}
        self._terms.add(solutions)
        self._unscored = np.concatenate((self._unscored, positions[np.isnan(scored)]))
        inexact = beyond(self._bound.plan.score, self._capacity, numbers)
        if inexact is not None:
            self._inexact = np.concatenate((self._inexact, positions[inexact]))

    # Answers out ----------------------------------------------------------------------------------

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield nothing: no element closes a window that is not full."""
        return iter(())

    def advance(self, tick: Tick) -> Iterator[Answer]:
        """Yield the answers of all windows that close up to a position, oldest first."""
        yield from self._answers.until(tick.watermark_ms, tick.due_at, self)
        opens = self._answers.schedule.next_open_ms
        gone = int(np.searchsorted(self._unscored, opens, side="right"))
        self._unscored = self._unscored[gone:]
        self._inexact = self._inexact[np.searchsorted(self._inexact, opens, side="right") :]
        self._terms.trim(lambda: self._skyline.held() + self._base)

    def terms(self, position: int) -> Mapping[str, str]:
        """Return the N-Triples terms of a solution that may be shown, by variable."""
        return self._terms.terms(position)

    def unscored(self, opens: int, closes: int) -> int:
        """Return the number of a window's solutions without a score."""
        return count_between(self._unscored, opens, closes)

    def certificate(self, closes: int, opens: int) -> Certificate:
        """Return the certificate of a window's answer, once for each answer."""
        bar = self._doubts.pop(closes, None)
        if count_between(self._inexact, opens, closes):
            return NOT_EXACT
        if bar is None:
            return _EXACT
        reason = f"by chance a result is missing, as in at most {self._error:g} of the answers"
        return Certificate(Status.PROBABILISTIC, reason, self._answers.score_of(bar))

    @property
    def _error(self) -> float:
        return self._bound.stream.approximate or 0.0

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    def snapshot(self) -> bytes:
        """Return the whole state. O(n)."""
        skyline = self._skyline
        settings = {
            "next": self._answers.schedule.next,
            "count": self._base + skyline.position - 1,
        }
        tables: dict[str, dict[str, AnyArray]] = {
            "window": {"merits": skyline.window()[skyline.n - len(skyline) :]},
            "unscored": {"positions": self._unscored},
            "inexact": {"positions": self._inexact},
            "doubts": {
                "closes": whole(self._doubts),
                "bounds": np.array([*self._doubts.values()], dtype=np.float64),
            },
            **self._answers.tables(),
        }
        parts = {
            "state": pack(_KIND, _VERSION, State(settings, tables)),
            "output": self._answers.output(),
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
            merits = state.tables["window"]["merits"]
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
            if "held" in parts:
                self._terms.resume(unpack_table(parts["held"]))
            self._answers.resume(state.settings["next"], state.tables, parts["output"])
        self._has_resumed = True
