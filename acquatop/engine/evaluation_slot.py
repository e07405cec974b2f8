"""Slot of an evaluation: its queries, its lock, and the streams that it joins."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from acquatop.answer.answer import Answer
from acquatop.answer.unanswered import Unanswered
from acquatop.answer.window_lists import WindowLists
from acquatop.engine.alignment import StreamAlignment
from acquatop.engine.handle import RegisteredQuery
from acquatop.errors import EnvironmentProblem
from acquatop.query.contract import Evaluation, ListKeeper

if TYPE_CHECKING:
    from acquatop.engine.answers_streams.stream import AnswersStream
    from acquatop.engine.answers_streams.worth import Inheritance

_NO_FAULT = (OSError, MemoryError, EnvironmentProblem)
"""Errors of the environment: if state is kept, they end the run, which can be resumed later."""


class EvaluationSlot:
    """Queries that are evaluated together; the threads of their streams take turns.

    ``lock`` is held while the evaluation is used. The handles of the queries belong to the slot, so
    that the streams can see if anybody still reads its answers.
    """

    def __init__(self, key: str, evaluation: Evaluation, *, shows_lists: bool = False) -> None:
        self.key = key
        self.evaluation = evaluation
        self._shows_lists = shows_lists
        self.lock = threading.RLock()
        self.error: BaseException | None = None
        self.has_begun = False
        self.streams = StreamAlignment()
        self.queries: tuple[RegisteredQuery, ...] = ()
        """Replaced as a whole at each change, so that it can be read without a lock."""
        self.answers_streams: tuple[AnswersStream, ...] = ()
        """Streams that its queries make and others read. Replaced as a whole, too."""
        self.last: dict[str, Answer | Unanswered] = {}
        """Last answer of each query in this process."""
        self._inheritance: dict[str, Inheritance] = {}
        self._waits: dict[str, float] = {}
        self._unreported: BaseException | None = None

    @property
    def has_readers(self) -> bool:
        """True if any running query needs the answers."""
        return any(not query.stopped for query in self.queries)

    @property
    def is_running(self) -> bool:
        """True if the evaluation has begun and has not failed."""
        return self.has_begun and self.error is None

    @property
    def is_over(self) -> bool:
        """True if the evaluation has failed, or all its streams have ended: no query can join."""
        return self.error is not None or (self.has_begun and not len(self.streams))

    def add(self, query: RegisteredQuery) -> None:
        """Add a query's handle."""
        self.queries = (*self.queries, query)

    def remove(self, query: RegisteredQuery) -> None:
        """Remove a query's handle, and the stream that it makes."""
        self.queries = tuple(each for each in self.queries if each is not query)
        self._inheritance.pop(query.name, None)
        self.last.pop(query.name, None)
        for each in self.answers_streams:
            if each.query == query.name:
                each.operator.end()
        self.answers_streams = tuple(each for each in self.answers_streams if not each.has_ended)

    def inherit(self, query: str, inheritance: Inheritance) -> None:
        """Let a query's answers be worth no more than those of the streams that it reads."""
        self._inheritance[query] = inheritance

    @property
    def looks_back_ms(self) -> int:
        """Time before what is shown of the streams that its queries read, which they need."""
        return max((each.looks_back_ms for each in self._inheritance.values()), default=0)

    def judged(self, made: Answer | Unanswered) -> Answer | Unanswered:
        """Return an answer with the status that remains to it, and note it as the last."""
        known = None if isinstance(made, Unanswered) else self._inheritance.get(made.query)
        if known is not None and isinstance(made, Answer):
            made = known.judged(made)
        if self._shows_lists and isinstance(made, Answer):
            made = replace(made, lists=tuple(self.lists(made.query)))
        self.last[made.query] = made
        return made

    def lists(self, query: str) -> Sequence[WindowLists]:
        """Return the candidates held of a query's open windows; none if its kind has no lists."""
        with self.lock:
            evaluation = self.evaluation if self.is_running else None
            return evaluation.lists(query) if isinstance(evaluation, ListKeeper) else ()

    def fail(self, error: BaseException) -> None:
        """Note an error, which ends the evaluation."""
        self.error = self._unreported = error

    def claim_failure(self) -> BaseException | None:
        """Return an error that no stream has reported yet, once; None if there is none."""
        if self._unreported is None:
            return None
        with self.lock:
            error, self._unreported = self._unreported, None
        return error

    def await_turn(self) -> None:
        """Return once the thread that uses the evaluation, if any, is done."""
        with self.lock:
            pass

    def longest_wait(self, stream: str, seconds: float) -> float:
        """Note how long an evaluation may wait for one stream; return the least of all streams'."""
        # While one stream's thread waits for remotes, the others' wait for their turn.
        self._waits[stream] = seconds
        return min(self._waits.values())

    def forget_wait(self, stream: str) -> None:
        """Note that a stream has ended."""
        self._waits.pop(stream, None)


@contextmanager
def isolate_failures(slot: EvaluationSlot, *, durable: bool) -> Iterator[None]:
    """Hold a slot's lock; an error becomes the slot's own and affects no other slot.

    If state is ``durable``, errors of the environment are raised.
    """
    with slot.lock:
        try:
            yield
        except Exception as error:
            if durable and isinstance(error, _NO_FAULT):
                raise
            slot.fail(error)
