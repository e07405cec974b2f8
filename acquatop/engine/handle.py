"""Handle to a running query: read its answers, or stop it."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import heappop, heappush
from pathlib import Path
from typing import TYPE_CHECKING

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.parquet import ParquetSink
from acquatop.engine.interruptible import wait_until
from acquatop.errors import UserError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from acquatop.answer.sinks.contract import Sink

BACKLOG = 1_000
"""Answers of a live query that may wait to be read; older ones are dropped, and counted."""


@dataclass
class AnswerSignal:
    """State shared by an engine's queries: a condition to wait at, and numbers for answers.

    ``listeners`` are called at once, with the condition held: they must not wait.
    """

    condition: threading.Condition = field(default_factory=threading.Condition)
    numbers: Iterator[int] = field(default_factory=itertools.count)
    listeners: list[Callable[[], None]] = field(default_factory=list)

    def tell(self) -> None:
        """Wake all who wait; the caller holds the condition."""
        self.condition.notify_all()
        for listener in self.listeners:
            listener()


class RegisteredQuery:
    """Handle to a running query; iterate over it for its answers, one per window close.

    ``for`` waits in the thread that runs it, ``async for`` in its event loop.

    A reader never holds up the streams. The newest ``BACKLOG`` answers (or ``backlog``) of a live
    query wait to be read, and ``missed`` counts older ones that were dropped. On a recording all
    answers wait. The query ends when all its streams have ended, or with the first error.
    """

    def __init__(
        self,
        name: str,
        streams: Iterable[str],
        *,
        live: bool,
        news: AnswerSignal,
        slide_ms: float = 0,
        sinks: Sequence[Sink] = (),
        columns: Mapping[str, str] | None = None,
        backlog: int | None = None,
        leave: Callable[[RegisteredQuery], None] = lambda query: None,
        guard: Callable[[RegisteredQuery], None] = lambda query: None,
    ) -> None:
        self.name = name
        self.streams = tuple(streams)
        self.slide_ms = slide_ms
        self.missed = 0
        self.sinks = tuple(sinks)
        self._columns = columns
        self._live = live
        self._backlog = backlog
        self._running = set(self.streams)
        self._answers: deque[tuple[int, Answer]] = deque()
        self._end: _End | None = None
        self._news = news
        self._leave = leave
        self._guard = guard

    def __iter__(self) -> Iterator[Answer]:
        return self.answers()

    async def __aiter__(self) -> AsyncIterator[Answer]:
        """Yield answers as they come, without a thread; end with the query, or raise its error."""
        loop, came = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop may be closed already
                loop.call_soon_threadsafe(came.set)

        with self._news.condition:
            self._news.listeners.append(wake)
        try:
            while True:
                came.clear()
                with self._news.condition:
                    answer = self.take() if self._answers else None
                    end = self._end
                if answer is not None:
                    yield answer
                elif end is None:
                    await came.wait()
                elif end.error is None:
                    return
                else:
                    raise end.error
        finally:
            with self._news.condition:
                self._news.listeners.remove(wake)

    def __repr__(self) -> str:
        """Return the name, the streams, and how many answers wait."""
        state = "stopped" if self.stopped else "running"
        return f"<RegisteredQuery {self.name} {state}, {len(self._answers)} answers to read>"

    def answers(self, limit: int | None = None) -> Iterator[Answer]:
        """Yield answers as they come, at most ``limit``; end with the query, or raise its error."""
        return merged([self], self._news, limit)

    def to_dataframe(
        self, spark: SparkSession, types: Mapping[str, str] | None = None
    ) -> DataFrame:
        """Return the answers as a streaming DataFrame, which has each of them once.

        It reads the folder of the query's sink ``parquet:FOLDER``, and has the columns of such a
        table. A variable has a type of its own if all its values are known to have it, or if
        ``types`` says so: ``bigint``, ``double``, ``boolean`` or ``string``.
        """
        from acquatop.answer.sinks.answers_source import answers_stream

        folder = next((sink.folder for sink in self.sinks if isinstance(sink, ParquetSink)), None)
        if folder is None:
            hint = 'register it with sinks=[open_sink("parquet:FOLDER")]'
            raise UserError(f"{self.name} has no sink that a DataFrame can read\n  hint: {hint}")
        if not isinstance(folder, Path):
            hint = f'read the files themselves: spark.read.parquet("{folder}")'
            raise UserError(f"a DataFrame of {self.name} needs a local folder\n  hint: {hint}")
        return answers_stream(spark, folder, self.name, self._columns, types or {})

    def stop(self) -> None:
        """Stop this query; iterators over its answers end. Others on its streams continue.

        Raises :class:`~acquatop.errors.UserError` if running queries read its answers.
        """
        if not self.stopped:
            self._guard(self)
        self.finish(None, forget=True)
        self._leave(self)

    @property
    def stopped(self) -> bool:
        """True if no further answer will come."""
        return self._end is not None

    @property
    def error(self) -> BaseException | None:
        """The error that ended it early, or None."""
        return None if self._end is None else self._end.error

    # For the engine -------------------------------------------------------------------------------

    def put(self, answer: Answer) -> None:
        """Queue an answer for readers."""
        with self._news.condition:
            if self._end is None:
                self._answers.append((next(self._news.numbers), answer))
                if self._live and len(self._answers) > (
                    BACKLOG if self._backlog is None else self._backlog
                ):
                    self._answers.popleft()
                    self.missed += 1
                self._news.tell()

    def stream_ended(self, stream: str) -> bool:
        """Note the end of a stream; return True if it was the last."""
        self._running.discard(stream)
        return not self._running

    def finish(self, error: BaseException | None, *, forget: bool = False) -> None:
        """End the query, with an error if there is one; waiting answers stay unless ``forget``."""
        with self._news.condition:
            if forget:
                self._answers.clear()
            self._end = self._end or _End(error)
            self._news.tell()

    @property
    def first(self) -> int | None:
        """The number of the next answer to be read, or None."""
        return self._answers[0][0] if self._answers else None

    def take(self) -> Answer:
        """Return the next answer, and remove it from the queue."""
        return self._answers.popleft()[1]


def merged(
    queries: Sequence[RegisteredQuery], news: AnswerSignal, limit: int | None = None
) -> Iterator[Answer]:
    """Yield the answers of several queries in their order of arrival, at most ``limit``.

    Ends when all queries have ended. If a query failed, its error is raised after its answers.
    """
    given, left = 0, list(queries)
    ready: list[tuple[int, int]] = []
    """Numbers of the next answers of the queries in ``left`` that had one, and their places."""
    while limit is None or given < limit:
        with news.condition:
            answer = _next_of(left, ready)
            if answer is None:
                while not any(each.first is not None or each.stopped for each in left):
                    wait_until(news.condition.wait)
                left = [
                    each
                    for each in left
                    if each.first is not None or not each.stopped or each.error is not None
                ]
                firsts = ((each.first, at) for at, each in enumerate(left))
                ready = sorted((first, at) for first, at in firsts if first is not None)
                if not left:
                    return
                failed = next((each.error for each in left if each.error is not None), None)
                if not ready and failed is not None:
                    raise failed
                continue
        given += 1
        yield answer


def _next_of(queries: Sequence[RegisteredQuery], ready: list[tuple[int, int]]) -> Answer | None:
    """Take the oldest answer of those of queries that are ready, a heap; None if there is none.

    What comes later has a greater number. A query may have lost answers meanwhile.
    """
    while ready:
        number, at = heappop(ready)
        query = queries[at]
        answer = query.take() if query.first == number else None
        if query.first is not None:
            heappush(ready, (query.first, at))
        if answer is not None:
            return answer
    return None


@dataclass(frozen=True)
class _End:
    """End of a query: an error, or None for a regular end."""

    error: BaseException | None
