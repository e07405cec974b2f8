"""Delivery of answers, of failures and of ends: to sinks, readers and observers."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from acquatop.answer.answer import Answer
from acquatop.answer.unanswered import Unanswered
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.handle import RegisteredQuery
from acquatop.engine.observer import AnswerSeen, Observer, QueryState
from acquatop.engine.queries import QueryRegistry
from acquatop.engine.slots import SlotTable

if TYPE_CHECKING:
    from acquatop.answer.sinks.contract import Sink


class Delivery:
    """Delivery to all queries of an engine.

    If state is ``durable``, the error of a sink is raised: the state must not get ahead of a sink.
    The run ends there, and resumes from there. Otherwise only the queries of the sink fail.
    ``check`` raises an error if nothing may be written now.
    """

    def __init__(
        self,
        queries: QueryRegistry,
        slots: SlotTable,
        observer: Observer,
        *,
        durable: bool,
        check: Callable[[], object] = lambda: None,
    ) -> None:
        self._queries = queries
        self._slots = slots
        self._observer = observer
        self._durable = durable
        self._check = check
        # Held while observers are told of a query, so that its removal is the last they hear of it.
        self._telling = threading.Lock()

    def deliver(self, answers: Sequence[Answer], *, repeated: bool = False) -> None:
        """Give answers to the observer, then to their sinks, then to their readers."""
        with self._telling:
            # Looked up once, as a query may be removed meanwhile.
            queries = {
                name: query
                for name in {each.query for each in answers}
                if (query := self._queries.get(name))
            }
            wanted = [answer for answer in answers if answer.query in queries]
            for answer in wanted:
                held = self._sizes(queries[answer.query])
                self._observer.answer(AnswerSeen(answer=answer, repeated=repeated, **held))
        sinks = {id(sink): sink for answer in wanted for sink in queries[answer.query].sinks}
        for sink in sinks.values():
            self._check()
            its = [answer for answer in wanted if sink in queries[answer.query].sinks]
            self._write(sink, its, queries)
        for answer in wanted:
            queries[answer.query].put(answer)

    def _sizes(self, query: RegisteredQuery) -> dict[str, int]:
        slot = self._slots.of(query)
        return {} if slot is None else slot.evaluation.sizes(query.name)._asdict()

    def _write(
        self, sink: Sink, answers: Sequence[Answer], queries: Mapping[str, RegisteredQuery]
    ) -> None:
        try:
            sink.write(answers)
        except Exception as error:
            self._observer.failed(f"sink {type(sink).__name__}", error)
            if self._durable:
                raise
            for name in {answer.query for answer in answers}:
                self._queries.fail(queries[name], error)

    def miss(self, window: Unanswered) -> None:
        """Tell the observer of a window without an answer."""
        with self._telling:
            if self._queries.get(window.query) is not None:
                self._observer.unanswered(window)

    def tell_removed(self, name: str) -> None:
        """Tell the observer that a query has been removed: nothing about it follows."""
        with self._telling:
            self._observer.query(name, QueryState.REMOVED)

    def fail(self, slot: EvaluationSlot, error: BaseException) -> None:
        """End the queries of a slot that has failed."""
        for query in slot.queries:
            self._queries.fail(query, error)

    def end_stream(
        self, stream: str, slots: Sequence[EvaluationSlot], error: BaseException | None
    ) -> None:
        """Continue without a stream.

        Queries with no other stream end. After an error, all queries of the stream end.
        """
        for slot in slots:
            for query in slot.queries:
                if query.stream_ended(stream) or error is not None:
                    self._queries.end(query, error)
