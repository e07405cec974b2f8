"""Stream of one query's answers: its elements and its time go at once to the queries behind it."""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from acquatop.answer.answer import Answer
from acquatop.answer.elements import statements_of
from acquatop.answer.unanswered import Unanswered
from acquatop.engine.answers_streams.worth import Worth
from acquatop.engine.step import Made
from acquatop.runtime import Batch
from connectors.instants import EARLIEST_MS, LATEST_MS
from connectors.timed_statements import TimedStatement, rows_of

if TYPE_CHECKING:
    from acquatop.engine.evaluation_slot import EvaluationSlot
    from acquatop.engine.stream import StreamOperator
    from acquatop.engine.stream_slots import StreamSlots
    from acquatop.plan.bound import Bound

_NO_TIME = "it is not in the years 1 to 9999"
MOST_STATEMENTS = 1 << 14
"""Number of statements from which on they are handed on before the step's other answers."""


class AnswersStream:
    """Stream that one query makes, beside the state machine that has its readers.

    It goes on within the steps of the query's own streams: whoever takes a batch also takes what
    follows from its answers. So there is no queue between queries, one commit has all of them, and
    a source is not read faster than the last of them can follow. The stream's time is that up to
    which the query has answered.

    Use it under the lock of the query's slot.
    """

    def __init__(self, operator: StreamOperator, source: Bound) -> None:
        self.operator = operator
        self.iri = operator.iri
        self.query = source.name
        self.worth = Worth(operator.iri, compares=source.plan.output != "RSTREAM")
        self._told: dict[str, float] = {each.iri: -math.inf for each in source.streams}
        """Times up to which the query has been told of its streams in this process."""
        self._answers: list[Answer] = []
        self._statements = 0
        self._reached_ms: int | None = None
        self._last_ms: int | None = None
        """Close of the last window that the query has answered in this process."""

    @property
    def slots(self) -> StreamSlots:
        """Slots of the queries that read it."""
        return self.operator.slots

    # What the query has answered ------------------------------------------------------------------

    def note(self, made: Answer | Unanswered) -> None:
        """Note what a query of the slot has answered, if it is this one."""
        if made.query != self.query:
            return
        if not EARLIEST_MS <= made.closes_ms <= LATEST_MS:
            # A window may close beyond the years in which anything can happen.
            made = Unanswered(made.query, made.opens_ms, made.closes_ms, "time", _NO_TIME)
        if not self.slots.has_queries:
            self.worth.pass_by(made)
            return
        self.worth.note(made)
        self._last_ms = made.closes_ms
        if isinstance(made, Answer):
            self._answers.append(made)
            self._statements += sum(len(row.bindings) for row in made.rows) + len(made.triples)

    @property
    def is_full(self) -> bool:
        """True if so much has been noted that it should be handed on."""
        return self._statements >= MOST_STATEMENTS

    def reach(self, told: Mapping[str, float]) -> None:
        """Note times up to which the query has answered what its streams have brought."""
        self._told.update(told)
        reached = min(self._told.values())
        if math.isfinite(reached):
            self._reached_ms = int(reached)

    def hand_on(self, due_at: float, wait: float) -> Generator[Made, None, int]:
        """Hand on all that has been noted; yield the answers behind it, and return their number."""
        count, answers = 0, self._answers
        self._answers, self._statements = [], 0
        statements = list(statements_of(self.iri, answers))
        if statements:
            count += yield from self._take(statements, due_at, wait)
        if self._reached_ms is not None:
            self.operator.time.reach(self._reached_ms)
            self._reached_ms = None
            count += yield from self.operator.close_due_windows(due_at, wait)
        self.worth.forget_until(self._needed_from())
        return count

    def _take(
        self, statements: Sequence[TimedStatement], due_at: float, wait: float
    ) -> Generator[Made, None, int]:
        self.operator.begin_batch()
        batch = Batch({}, [list(self.operator.job()([rows_of(statements)]))])
        taken = yield from self.operator.absorb(batch, due_at, wait)
        self.operator.end_batch(batch)
        yield taken.seen
        return taken.answers

    def _needed_from(self) -> float:
        """Return the time up to which no window may show anything any more."""
        return min(map(self._shown_from, self.operator.slots), default=math.inf)

    def _shown_from(self, slot: EvaluationSlot) -> float:
        if math.isinf(slot.evaluation.slide_ms):
            return -math.inf  # the last elements may be of any time
        reached, opens = self.operator.time.reached_ms, []
        for each in slot.evaluation.windows(self.iri):
            shown = each.next if each.closed is None else each.closed
            if shown is not None:
                opens.append(each.windows.bounds(shown)[0])
            elif reached is not None:
                opens.append(reached - each.windows.width_ms)
        return min(opens, default=-math.inf) - slot.looks_back_ms

    # The end --------------------------------------------------------------------------------------

    def end(self, stream: str, due_at: float, *, closes: bool) -> Iterator[Made]:
        """Note the end of one of the query's streams.

        After the last, yield the answers that are left, if it ``closes`` windows.
        """
        self._told[stream] = math.inf
        if all(math.isinf(each) and each > 0 for each in self._told.values()):
            if closes:
                self._reached_ms = self._last_ms
                yield from self.hand_on(due_at, math.inf)
            self.operator.end()
            yield from self.operator.finish(closes=closes)

    # State ----------------------------------------------------------------------------------------

    @property
    def has_ended(self) -> bool:
        """True if nothing comes any more."""
        return self.operator.has_ended

    def state(self) -> dict[str, Any]:
        """Return the stream's time, and the worth of what windows hold, as JSON."""
        return {**self.operator.state(), "worth": self.worth.state()}

    def snapshot_committed(self) -> None:
        """Note that a snapshot with the present state is durable."""
        self.operator.snapshot_committed()

    def resume(self, state: Mapping[str, Any]) -> None:
        """Resume from a state."""
        self.operator.resume(state)
        self.worth.resume(state["worth"])
