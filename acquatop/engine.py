"""The engine: a catalog, queries as text, answers as they come."""

from __future__ import annotations

import functools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from acquatop.answer import Answer
from acquatop.binding import BoundQuery, bind_query
from acquatop.catalog import Catalog, Stream
from acquatop.errors import EnvironmentProblem
from acquatop.query import ContinuousQuery
from acquatop.runtime import Carrier, Runtime, check_runtime, open_runtime
from connectors.mapping import TIME
from replica.maintainer import Clock, Maintainer
from replica.remotes import RemoteError
from replica.remotes.registry import REMOTES
from replica.store import ReplicaStore
from rspql.printer import pattern_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKLOG = 1_000
"""How many answers of a live query may wait to be read; beyond it the oldest are dropped, and counted."""

_LOG = logging.getLogger("acquatop")


class RegisteredQuery:
    """A query that runs; iterate over it for its answers, one per window close.

    A reader never holds up the stream: of a live query the newest ``BACKLOG`` answers wait to be
    read, and ``missed`` counts those that were dropped before; of a recording all wait.
    """

    def __init__(self, query: ContinuousQuery, *, live: bool) -> None:
        self.name = query.name
        self.missed = 0
        self._query = query
        self._live = live
        self._answers: deque[Answer] = deque()
        self._end: _End | None = None
        self._news = threading.Condition()
        self._leave: Callable[[], None] = lambda: None

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


@dataclass(frozen=True)
class _End:
    """Why no further answer will come: an error, or just the end."""

    error: BaseException | None


class _Pipeline:
    """One stream, the queries on it, and the time that has passed on it."""

    def __init__(self, stream: Stream, *, until_end: bool, clock: Clock) -> None:
        self._stream = stream
        self._until_end = until_end
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
                query._query.start_after(self._newest_ms)
            self._queries.append(query)
            query._leave = lambda: self._drop(query)
            return True

    def _drop(self, query: RegisteredQuery) -> None:
        with self._lock:
            if query in self._queries:
                self._queries.remove(query)

    def on_batch(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Hand a batch to every query, then let the windows close that it brings to their end."""
        due_at = self._clock()
        times = [pc.max(batch.column(TIME)).as_py() for batch in batches]
        with self._lock:
            newest = max((time for time in [*times, self._newest_ms] if time is not None), default=None)
            self._newest_ms = newest
            queries = list(self._queries)
        for query in queries:
            for batch in batches:
                query._query.add(batch)
            if newest is not None:
                self._answer(query, query._query.advance(newest - self._stream.lateness_ms, due_at))

    def on_end(self, error: BaseException | None) -> None:
        """Close the windows that are left, if the stream has come to its end and not to grief."""
        with self._lock:
            self.ended = True
            queries = list(self._queries)
        for query in queries:
            ending = error
            if error is None and self._until_end:
                try:
                    self._answer(query, query._query.finish())
                except Exception as failure:
                    ending = failure
            query._finish(ending)

    def _answer(self, query: RegisteredQuery, answers: Iterator[Answer]) -> None:
        # Answers are made one by one, each with its requests to the remote: none for a query that was stopped.
        while not query.stopped and (answer := next(answers, None)) is not None:
            query._put(answer)


class Engine:
    """Runs queries over the streams and services of a catalog.

    Use it as a context manager, or call :meth:`stop`. A query starts to run when it is
    registered. ``until_end`` reads only what the streams hold now and then closes the windows
    that are left, for recordings. ``spark`` is a session to use instead of one of the engine's own.

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
    ) -> None:
        check_runtime(runtime)
        self.catalog = catalog
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
    ) -> Self:
        """Return an engine for a catalog file; ``variables`` are what ``${NAME}`` stands for in it."""
        catalog = Catalog.load(path, variables=variables)
        return cls(catalog, runtime=runtime, until_end=until_end, spark=spark)

    def register(self, text: str, *, name: str | None = None, file: str = "<query>") -> RegisteredQuery:
        """Compile a query, fill its replica, and run it on its stream from now on.

        Raises :class:`~rspql.diagnostics.QueryError` for what is wrong with the text, and
        :class:`~acquatop.errors.EnvironmentProblem` when the remote cannot be reached.
        """
        bound = bind_query(text, self.catalog, file=file, name=name)
        live = not self._until_end
        continuous = ContinuousQuery(bound, self._maintainer(bound), clock=self._clock, live=live)
        query = RegisteredQuery(continuous, live=live)
        self._queries.append(query)
        running = next((each for each in self._pipelines if each.stream_iri == bound.stream.iri and live), None)
        if running is None or not running.join(query):
            self._start(bound.stream, query)
        return query

    def _start(self, stream: Stream, query: RegisteredQuery) -> None:
        """Carry a stream for a query: a live one is shared by those that come later, a recording is read for each."""
        # Opened only now: what is wrong with a query or a remote is said before Spark has to start.
        self._runtime = self._runtime or self._open_runtime()
        pipeline = _Pipeline(stream, until_end=self._until_end, clock=self._clock)
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
        if self._runtime is not None:
            self._runtime.close()
            self._runtime = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _maintainer(self, bound: BoundQuery) -> Maintainer:
        service, asked = bound.service, bound.plan.service
        key = bound.plan.join_variables[0]
        remote = REMOTES[service.remote](
            service.endpoint,
            pattern=pattern_text(asked.pattern),
            variables=asked.variables,
            key=key,
            block_size=service.block_size,
        )
        maintainer = Maintainer(
            ReplicaStore(key, asked.variables),
            remote,
            service.refresh.budget,
            clock=self._clock,
            request_timeout=service.timeout_seconds,
        )
        if service.load:
            try:
                if not maintainer.load():
                    _LOG.warning("<%s> has nothing that matches: %s", service.iri, pattern_text(asked.pattern))
            except RemoteError as error:
                hint = f"start it, correct the endpoint of <{service.iri}> in the catalog, or set load = false there"
                raise EnvironmentProblem(f"{error}\n  hint: {hint}") from error
        return maintainer
