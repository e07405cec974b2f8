"""One of the queries that rank the same last elements by distances to points of their own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from acquatop.answer.answer import Answer, Status
from acquatop.answer.certificate import Certificate
from acquatop.ingest.capacity import beyond
from acquatop.plan.bound import BoundCounted, BoundQuery
from acquatop.query.counters import WindowCounters
from acquatop.query.element_answers import ElementAnswers, ElementFacts, count_between
from acquatop.query.element_positions import Positions
from acquatop.query.exactness import NOT_EXACT, Exactness
from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.sliding.contract import Changes
from acquatop.topk.snapshot import State, pack, pack_parts, reading, unpack, unpack_parts
from acquatop.windows import over_positions
from replica.clocks import Clock

_KIND, _VERSION = "nearest of elements", 1
_EXACT = Certificate(Status.EXACT)


class NearestMember:
    """Query over the elements after ``since_ms``: its windows, its counters and its answers.

    Its first element is known once the positions have passed that time. Windows are over the
    positions of all queries, and numbered as if its first element were the first.
    """

    def __init__(
        self,
        bound: BoundCounted,
        positions: Positions,
        since_ms: int | None,
        *,
        clock: Clock,
        wall_clock: Clock,
    ) -> None:
        assert isinstance(bound.query, BoundQuery)
        assert bound.nearest is not None
        self.bound = replace(bound.query, name=bound.name)
        self.centre = bound.nearest.centre
        self.k = self.bound.plan.k + self.bound.plan.offset
        self.since_ms = since_ms
        self.number = -1
        """Number of the query in the structure."""
        self.first: int | None = None
        """Position of its first element; None until that is known."""
        self.counters = WindowCounters()
        self._positions = positions
        self._clocks = clock, wall_clock
        self._answers: ElementAnswers | None = None
        self._capacity = Exactness(self.bound.plan.score, None).capacity
        self._inexact: IntArray = np.empty(0, dtype=np.int64)
        """Positions of elements whose scores may lack digits."""
        self._late_until = 0
        """Last position whose window should have held a late element."""

    def begin(self, first: int) -> None:
        """Begin with the element at a position."""
        self.first = first
        width, step = self.bound.windows.width_ms, self.bound.windows.slide_ms
        windows = replace(over_positions(width, step), t0_ms=step - width + first - 1)
        clock, wall_clock = self._clocks
        self._answers = ElementAnswers(
            self.bound,
            windows,
            instant=self._positions.time_of,
            clock=clock,
            wall_clock=wall_clock,
        )

    @property
    def next_open(self) -> int | None:
        """Position after which the next window opens; None before the first element."""
        return None if self._answers is None else self._answers.schedule.next_open_ms

    # Elements -------------------------------------------------------------------------------------

    def note_late(self, times: IntArray) -> None:
        """Note the times of elements that came too late to have a position."""
        own = times if self.since_ms is None else times[times > self.since_ms]
        if len(own):
            self.counters.late += len(own)
            last = self._positions.last_with(int(own.max()))
            self._late_until = max(self._late_until, last)

    def note_numbers(
        self, positions: IntArray, numbers: Sequence[FloatArray], greatest: float
    ) -> None:
        """Note the numbers of solutions, and the greatest magnitude of the whole ones."""
        if greatest > self._capacity:
            inexact = beyond(self.bound.plan.score, self._capacity, numbers)
            if inexact is not None:
                self._inexact = np.concatenate((self._inexact, positions[inexact]))

    def note(self, changes: Changes, base: int) -> None:
        """Note how its best changed."""
        assert self._answers is not None
        self._answers.note(changes, base)

    # Answers --------------------------------------------------------------------------------------

    def until(self, position: int, due_at: float, facts: ElementFacts) -> Iterator[Answer]:
        """Yield the answers of its windows that close up to a position, with times as bounds."""
        answers, self._facts = self._answers, facts
        if answers is None:
            return
        says_all = self.bound.plan.output == "RSTREAM"
        for answer in answers.until(position, due_at, self):
            if says_all or answer.rows or answer.triples or answer.boolean:
                yield self._timed(answer)
        if len(self._inexact):
            opens = answers.schedule.next_open_ms
            self._inexact = self._inexact[np.searchsorted(self._inexact, opens, "right") :]

    def terms(self, position: int) -> dict[str, str]:
        """Return the N-Triples terms of a solution that may be shown, by variable."""
        return dict(self._facts.terms(position))

    def unscored(self, opens: int, closes: int) -> int:
        """Return the number of a window's solutions without a score."""
        assert self.first is not None
        return self._facts.unscored(max(opens, self.first - 1), closes)

    def certificate(self, closes: int, opens: int) -> Certificate:
        """Return the certificate of a window's answer."""
        has_inexact = len(self._inexact) and count_between(self._inexact, opens, closes)
        return NOT_EXACT if has_inexact else _EXACT

    def _timed(self, answer: Answer) -> Answer:
        """Return an answer with times in place of positions, and with its counts."""
        assert self.first is not None
        newest, said = answer.closes_ms, answer.counts
        oldest = max(self.first, answer.opens_ms + 1)
        counts = self.counters.take(said.unscored, said.ambiguous, said.rejected)
        time_of = self._positions.time_of
        answer = answer.over_elements(time_of(oldest) - 1, time_of(newest), counts, ())
        if newest > self._late_until:
            return answer
        return replace(
            answer,
            status=Status.APPROXIMATE,
            reason="something that belongs into a window came too late",
            bound=self.bound.late_bound,
        )

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the query's own state."""
        settings = {
            "since_ms": self.since_ms,
            "first": self.first,
            "next": None if self._answers is None else self._answers.schedule.next,
            "late_until": self._late_until,
        }
        tables = {} if self._answers is None else self._answers.tables()
        tables = {**tables, "inexact": {"positions": self._inexact}}
        parts = {
            "state": pack(_KIND, _VERSION, State(settings, tables)),
            "tally": self.counters.snapshot(),
            "output": b"" if self._answers is None else self._answers.output(),
        }
        return pack_parts(parts)

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            state = unpack(_KIND, _VERSION, parts["state"])
            self.since_ms = state.settings["since_ms"]
            self._late_until = state.settings["late_until"]
            self._inexact = state.tables["inexact"]["positions"]
            self.counters.resume(parts["tally"])
            if state.settings["first"] is not None:
                self.begin(state.settings["first"])
                assert self._answers is not None
                self._answers.resume(state.settings["next"], state.tables, parts["output"])
