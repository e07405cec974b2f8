"""The engine: a catalog, queries as text, answers as they come."""

from __future__ import annotations

import functools
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, Self

import pyarrow as pa
import pyarrow.compute as pc

from acquatop.answer import Answer
from acquatop.binding import BoundQuery, BoundWindowed, bind_query
from acquatop.catalog import Catalog, Stream
from acquatop.query import ContinuousQuery
from acquatop.replicas import Progress, Replicas
from acquatop.runtime import Carrier, Runtime, check_runtime, open_runtime
from acquatop.windowed_query import WindowedQuery
from connectors.mapping import TIME
from replica.clocks import Clock
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKLOG = 1_000
"""How many answers of a live query may wait to be read; beyond it the oldest are dropped, and counted."""


class QueryAtWork(Protocol):
    """What the engine drives: events of one stream or several in, answers out. Called by one thread at a time."""

    name: str
    slide_ms: int
    """How often its windows close, the most frequent of several."""

    def add(self, stream: str, records: pa.RecordBatch) -> None:
        """Take in a batch of a stream's decoded records."""
        ...

    def start_after(self, stream: str, time_ms: int) -> None:
        """Answer only for windows on a stream that open at a time or after it."""
        ...

    def advance(
        self, stream: str, watermark_ms: int, due_at: float | None = None, longest_wait: float = math.inf
    ) -> Iterator[Answer]:
        """Yield the answers that are due once a stream has come to a watermark, oldest first.

        Each waits for remotes at most ``longest_wait`` seconds.
        """
        ...

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers that are due once a stream has ended; with the last stream, all that are left."""
        ...

    def close(self) -> None:
        """Let go of all that runs for it beside; safe to call again, and from any thread."""
        ...


class RegisteredQuery:
    """A query that runs; iterate over it for its answers, one per window close.

    A reader never holds up the streams: of a live query the newest ``BACKLOG`` answers wait to be
    read, and ``missed`` counts those that were dropped before; of a recording all wait. The query
    ends when all its streams have, or with the first error.
    """

    def __init__(self, query: QueryAtWork, streams: Iterable[str], *, live: bool) -> None:
        self.name = query.name
        self.slide_ms = query.slide_ms
        self.missed = 0
        self._query = query
        self._live = live
        self._running = set(streams)
        self._waits: dict[str, float] = {}
        # Each stream has a thread of its own; they take turns.
        self._turn = threading.Lock()
        self._answers: deque[Answer] = deque()
        self._end: _End | None = None
        self._news = threading.Condition()
        self._leaves: list[Callable[[], None]] = []

    def __iter__(self) -> Iterator[Answer]:
        return self.answers()

    def answers(self, limit: int | None = None) -> Iterator[Answer]:
        """Yield answers as they come, at most ``limit``; ends with the stream, raises what ended it early."""
        given = 0
        while limit is None or given < limit:
            answer = self._take()
            if answer is None:
                return
            given += 1
            yield answer

    def stop(self) -> None:
        """Stop this query; iterators over its answers end. The others on its stream go on."""
        self._finish(None, forget=True)
        self._leave()

    def _leave(self) -> None:
        for leave in self._leaves:
            leave()

    @property
    def stopped(self) -> bool:
        """Whether no further answer will come."""
        return self._end is not None

    def _take(self) -> Answer | None:
        with self._news:
            self._news.wait_for(lambda: self._answers or self._end)
            if self._answers:
                return self._answers.popleft()
            assert self._end is not None
            if self._end.error is not None:
                raise self._end.error
            return None

    def _start_after(self, stream: str, time_ms: int) -> None:
        with self._turn:
            self._query.start_after(stream, time_ms)

    def _feed(
        self,
        stream: str,
        batches: Sequence[pa.RecordBatch],
        watermark_ms: int | None,
        due_at: float,
        longest_wait: float,
    ) -> None:
        """Hand in what came on a stream, and give out the answers that are due then; an error ends only this query."""
        try:
            with self._turn:
                # While one stream's thread waits for remotes, the others' wait for their turn.
                self._waits[stream] = longest_wait
                for batch in batches:
                    self._query.add(stream, batch)
                if watermark_ms is not None:
                    self._give_out(self._query.advance(stream, watermark_ms, due_at, min(self._waits.values())))
        except Exception as error:
            self._finish(error)
            self._leave()

    def _stream_ended(self, stream: str, error: BaseException | None) -> None:
        """Go on without a stream; without the last, or when it has come to grief, end."""
        with self._turn:
            self._running.discard(stream)
            self._waits.pop(stream, None)
            if error is None and not self._live:
                try:
                    self._give_out(self._query.finish(stream))
                except Exception as failure:
                    error = failure
        if error is not None or not self._running:
            self._finish(error)
            self._leave()

    def _give_out(self, answers: Iterator[Answer]) -> None:
        # Answers are made one by one, each with its requests to the remote: none for a query that was stopped.
        while not self.stopped and (answer := next(answers, None)) is not None:
            self._put(answer)

    def _put(self, answer: Answer) -> None:
        with self._news:
            if self._end is None:
                self._answers.append(answer)
                if self._live and len(self._answers) > BACKLOG:
                    self._answers.popleft()
                    self.missed += 1
                self._news.notify_all()

    def _finish(self, error: BaseException | None, *, forget: bool = False) -> None:
        with self._news:
            if forget:
                self._answers.clear()
            self._end = self._end or _End(error)
            self._news.notify_all()
        self._query.close()


@dataclass(frozen=True)
class _End:
    """Why no further answer will come: an error, or just the end."""

    error: BaseException | None


class _Pipeline:
    """One stream, the queries on it, and the time that has passed on it."""

    def __init__(self, stream: Stream, *, clock: Clock, live: bool) -> None:
        self._stream = stream
        self._live = live
        self._clock = clock
        self._queries: list[RegisteredQuery] = []
        self._newest_ms: int | None = None
        self._lock = threading.Lock()
        self.stream_iri = stream.iri
        self.ended = False
        self.carrier: Carrier | None = None

    def join(self, query: RegisteredQuery) -> bool:
        """Let a query see what comes from now on; False when the stream has ended already."""
        with self._lock:
            if self.ended:
                return False
            if self._newest_ms is not None:
                query._start_after(self.stream_iri, self._newest_ms)
            self._queries.append(query)
            query._leaves.append(lambda: self._drop(query))
            return True

    def _drop(self, query: RegisteredQuery) -> None:
        with self._lock:
            if query in self._queries:
                self._queries.remove(query)

    def on_batch(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Hand a batch to every query, which lets the windows close that it brings to their end."""
        due_at = self._clock()
        times = [pc.max(batch.column(TIME)).as_py() for batch in batches]
        with self._lock:
            newest = max((time for time in [*times, self._newest_ms] if time is not None), default=None)
            self._newest_ms = newest
            queries = list(self._queries)
        watermark_ms = None if newest is None else newest - self._stream.lateness_ms
        for query in queries:
            query._feed(self.stream_iri, batches, watermark_ms, due_at, self._longest_wait(queries))

    def _longest_wait(self, queries: Sequence[RegisteredQuery]) -> float:
        """Return how many seconds each query may wait for its remotes whenever a window of its closes.

        Queries on a stream take turns. On a live one all of them together wait at most half of the
        shortest slide, so that none falls behind for good; a recording has all the time there is.
        """
        if not self._live:
            return math.inf
        return min(query.slide_ms for query in queries) / 2000 / len(queries)

    def on_end(self, error: BaseException | None) -> None:
        """Close the windows that are left, if the stream has come to its end and not to grief."""
        with self._lock:
            self.ended = True
            queries = list(self._queries)
        for query in queries:
            query._stream_ended(self.stream_iri, error)


class Engine:
    """Runs queries over the streams and services of a catalog.

    Use it as a context manager, or call :meth:`stop`. A query starts to run when it is
    registered. ``until_end`` reads only what the streams hold now and then closes the windows
    that are left, for recordings. ``spark`` is a session to use instead of one of the engine's own;
    ``functions`` are those that scores may call and ``rankers`` those that policies may name, with your own
    among them; ``progress`` is told how far the loading of a replica has come.

    ::

        with Engine.from_catalog("catalog.toml") as engine:
            for answer in engine.register(Path("query.rspql").read_text()):
                print(answer.closes_ms, answer.status, [row.bindings["user"] for row in answer.rows])
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        runtime: str = "spark",
        until_end: bool = False,
        spark: SparkSession | None = None,
        clock: Clock = time.monotonic,
        functions: FunctionRegistry = DEFAULT_FUNCTIONS,
        rankers: RankerRegistry = DEFAULT_RANKERS,
        progress: Progress | None = None,
    ) -> None:
        check_runtime(runtime)
        self.catalog = catalog
        self._functions = functions
        self._rankers = rankers
        self._replicas = Replicas(clock=clock, progress=progress)
        self._until_end = until_end
        self._clock = clock
        self._open_runtime = functools.partial(open_runtime, runtime, spark)
        self._runtime: Runtime | None = None
        self._pipelines: list[_Pipeline] = []
        self._queries: list[RegisteredQuery] = []

    @classmethod
    def from_catalog(
        cls,
        path: str | Path,
        *,
        runtime: str = "spark",
        until_end: bool = False,
        spark: SparkSession | None = None,
        variables: Mapping[str, str] | None = None,
        functions: FunctionRegistry = DEFAULT_FUNCTIONS,
        rankers: RankerRegistry = DEFAULT_RANKERS,
        progress: Progress | None = None,
    ) -> Self:
        """Return an engine for a catalog file; ``variables`` are what ``${NAME}`` stands for in it."""
        catalog = Catalog.load(path, variables=variables, rankers=rankers)
        return cls(
            catalog,
            runtime=runtime,
            until_end=until_end,
            spark=spark,
            functions=functions,
            rankers=rankers,
            progress=progress,
        )

    def register(self, text: str, *, name: str | None = None, file: str = "<query>") -> RegisteredQuery:
        """Compile a query, fill its replicas, and run it on its streams from now on.

        Raises :class:`~rspql.diagnostics.QueryError` for what is wrong with the text, and
        :class:`~acquatop.errors.EnvironmentProblem` when the remote cannot be reached.
        """
        return self.run(bind_query(text, self.catalog, functions=self._functions, file=file, name=name))

    def run(self, bound: BoundQuery | BoundWindowed) -> RegisteredQuery:
        """Run a query that is bound already; :meth:`register` binds one given as text."""
        streams = bound.streams
        query = RegisteredQuery(self._at_work(bound), [stream.iri for stream in streams], live=not self._until_end)
        self._queries.append(query)
        try:
            for stream in streams:
                self._feed(stream, query)
        except BaseException:
            query.stop()
            raise
        return query

    def _feed(self, stream: Stream, query: RegisteredQuery) -> None:
        live = not self._until_end
        running = next((each for each in self._pipelines if each.stream_iri == stream.iri and live), None)
        if running is None or not running.join(query):
            self._start(stream, query)

    def _start(self, stream: Stream, query: RegisteredQuery) -> None:
        """Carry a stream for a query: a live one is shared by those that come later, a recording is read for each."""
        # Opened only now: what is wrong with a query or a remote is said before Spark has to start.
        self._runtime = self._runtime or self._open_runtime()
        pipeline = _Pipeline(stream, clock=self._clock, live=not self._until_end)
        pipeline.join(query)
        pipeline.carrier = self._runtime.carry(stream, pipeline.on_batch, pipeline.on_end, until_end=self._until_end)
        self._pipelines = [each for each in self._pipelines if not each.ended] + [pipeline]

    def stop(self) -> None:
        """Stop all queries and streams; iterators over answers end. Safe to call again."""
        for query in self._queries:
            query._finish(None, forget=True)
        for pipeline in self._pipelines:
            if pipeline.carrier is not None:
                pipeline.carrier.stop()
        self._pipelines.clear()
        self._queries.clear()
        self._replicas.close()
        if self._runtime is not None:
            self._runtime.close()
            self._runtime = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _at_work(self, bound: BoundQuery | BoundWindowed) -> QueryAtWork:
        """Return a query with its replicas filled, ready for events."""
        match bound:
            case BoundQuery():
                replica = self._replicas.open(bound)
                return ContinuousQuery(bound, replica, clock=self._clock, rankers=self._rankers)
            case BoundWindowed():
                replicas = self._replicas.open_all(bound)
                return WindowedQuery(bound, replicas, clock=self._clock, rankers=self._rankers)
