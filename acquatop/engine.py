"""The engine: a catalog, queries as text, answers as they come."""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from acquatop.answer import Answer
from acquatop.binding import BoundQuery, bind_query
from acquatop.catalog import Catalog, Stream
from acquatop.errors import AcquaTopError, EnvironmentProblem
from acquatop.query import ContinuousQuery
from acquatop.runtime import Carrier, Runtime, open_runtime
from connectors.mapping import TIME
from replica.maintainer import Clock, Maintainer
from replica.remotes import RemoteError
from replica.remotes.sparql import SparqlRemote
from replica.store import ReplicaStore
from rspql.printer import pattern_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKLOG = 1_000
"""How many answers may wait to be read before the stream waits for their reader."""


class RegisteredQuery:
    """A query that runs; iterate over it for its answers, one per window close."""

    def __init__(self, query: ContinuousQuery) -> None:
        self.name = query.name
        self._query = query
        self._answers: queue.Queue[Answer | _End] = queue.Queue(BACKLOG)
        self._stopping = threading.Event()

    def __iter__(self) -> Iterator[Answer]:
        return self.answers()

    def answers(self, limit: int | None = None) -> Iterator[Answer]:
        """Yield answers as they come, at most ``limit``; ends with the stream, raises what ended it early."""
        given = 0
        while limit is None or given < limit:
            item = self._answers.get()
            if isinstance(item, _End):
                self._answers.put(item)  # for whoever asks again
                if item.error is not None:
                    raise item.error
                return
            given += 1
            yield item

    def _put(self, item: Answer | _End) -> None:
        while not self._stopping.is_set():
            try:
                self._answers.put(item, timeout=0.1)
            except queue.Full:
                continue
            return

    def _stop(self) -> None:
        """Let nobody wait any more: neither the stream for a reader, nor a reader for the stream."""
        self._stopping.set()
        while True:
            try:
                self._answers.put_nowait(_End(None))
            except queue.Full:
                self._answers.get_nowait()
            else:
                return


class _End:
    """Follows a query's last answer."""

    def __init__(self, error: BaseException | None) -> None:
        self.error = error


class _Pipeline:
    """One stream, the queries on it, and the time that has passed on it."""

    def __init__(self, stream: Stream, until_end: bool) -> None:
        self._stream = stream
        self._until_end = until_end
        self._queries: list[RegisteredQuery] = []
        self._newest_ms: int | None = None
        self._lock = threading.Lock()
        self.carrier: Carrier | None = None

    def join(self, query: RegisteredQuery) -> None:
        """Let a query see what comes from now on."""
        with self._lock:
            self._queries.append(query)

    def on_batch(self, batches: Sequence[pa.RecordBatch]) -> None:
        """Hand a batch to every query, then let the windows close that it brings to their end."""
        times = [pc.max(batch.column(TIME)).as_py() for batch in batches]
        self._newest_ms = max((time for time in [*times, self._newest_ms] if time is not None), default=None)
        with self._lock:
            queries = list(self._queries)
        for query in queries:
            for batch in batches:
                query._query.add(batch)
            if self._newest_ms is not None:
                for answer in query._query.advance(self._newest_ms - self._stream.lateness_ms):
                    query._put(answer)

    def on_end(self, error: BaseException | None) -> None:
        """Close the windows that are left, if the stream has come to its end and not to grief."""
        with self._lock:
            queries = list(self._queries)
        for query in queries:
            if error is None and self._until_end and not query._stopping.is_set():
                for answer in query._query.finish():
                    query._put(answer)
            query._put(_End(error))


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
        self.catalog = catalog
        self._until_end = until_end
        self._clock = clock
        self._open_runtime = functools.partial(open_runtime, runtime, spark)
        self._runtime: Runtime | None = None
        self._pipelines: dict[str, _Pipeline] = {}
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
        query = RegisteredQuery(ContinuousQuery(bound, self._maintainer(bound), clock=self._clock))
        # Opened only now: what is wrong with a query or a remote is said before Spark has to start.
        self._runtime = self._runtime or self._open_runtime()
        self._queries.append(query)
        pipeline = self._pipelines.get(bound.stream.iri)
        if pipeline is not None:
            pipeline.join(query)
            return query
        pipeline = self._pipelines[bound.stream.iri] = _Pipeline(bound.stream, self._until_end)
        pipeline.join(query)
        pipeline.carrier = self._runtime.carry(
            bound.stream, pipeline.on_batch, pipeline.on_end, until_end=self._until_end
        )
        return query

    def stop(self) -> None:
        """Stop all queries and streams; iterators over answers end. Safe to call again."""
        for query in self._queries:
            query._stop()
        for pipeline in self._pipelines.values():
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
        remote = SparqlRemote(
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
                maintainer.load()
            except RemoteError as error:
                hint = f"start it, correct the endpoint of <{service.iri}> in the catalog, or set load = false there"
                raise EnvironmentProblem(f"{error}\n  hint: {hint}") from error
        return maintainer


__all__ = ["AcquaTopError", "Engine", "RegisteredQuery"]
