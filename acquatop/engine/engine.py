"""Engine: registers queries, runs them on the streams of a catalog, and gives out their answers."""

from __future__ import annotations

import functools
import hashlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self

from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog, Stream
from acquatop.engine.handle import BACKLOG, AnswerSignal, RegisteredQuery, merged
from acquatop.engine.observer import AnswerSeen, Observer, QueryState, Silent
from acquatop.engine.persistence import EngineState, KeptUnit
from acquatop.engine.stream import EvaluationSlot, Pipeline
from acquatop.errors import UserError
from acquatop.ingest.buckets.task import Bucket, BucketFound, BucketTask
from acquatop.plan.bind import Bound, BoundQuery, bind_query
from acquatop.plan.grouping import can_share, choice_among, evaluation_key
from acquatop.query.kinds import Resources, open_evaluation
from acquatop.refresh.open_replicas import Progress, Replicas
from acquatop.runtime import Position, Resume, Runtime, check_runtime, open_runtime
from connectors.registry import CONNECTORS
from replica.clocks import Clock
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from acquatop.answer.sinks.contract import Sink
    from acquatop.engine.recorder import Recorder
    from acquatop.runtime.settings import SparkSettings

__all__ = ["BACKLOG", "Engine", "RegisteredQuery"]


class Engine:
    """Engine that runs queries over the streams and services of a catalog.

    Use it as a context manager, or call :meth:`stop`. A query starts when it is registered. If
    ``autostart`` is False (the default with a ``state``), all queries start together with
    :meth:`start`. ``until_end`` reads only the present content of the streams and then closes all
    windows, for recordings.

    ``state`` is a folder: an engine resumes there after a former one, however that ended. All
    queries that shall resume must be registered before the engine starts. ``spark`` is a
    session to use instead of one of the engine's own, or
    :class:`~acquatop.runtime.settings.SparkSettings` for that one. ``functions`` may be called
    in scores, and ``rankers`` may be named in policies; both may include your own. ``progress``
    is called while a replica is loaded. ``observer`` is told of the engine's work. A
    ``recording`` records the stream and the remote of the one query that it was opened for.

    ::

        with Engine.from_catalog("catalog.toml") as engine:
            for answer in engine.register(Path("query.rspql").read_text()):
                users = [row.bindings["user"] for row in answer.rows]
                print(answer.closes_ms, answer.status, users)
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        runtime: str = "spark",
        until_end: bool = False,
        spark: SparkSession | SparkSettings | None = None,
        clock: Clock = time.monotonic,
        functions: FunctionRegistry = DEFAULT_FUNCTIONS,
        rankers: RankerRegistry = DEFAULT_RANKERS,
        progress: Progress | None = None,
        observer: Observer | None = None,
        state: Path | None = None,
        autostart: bool | None = None,
        recording: Recorder | None = None,
    ) -> None:
        check_runtime(runtime, spark)
        if autostart and state is not None:
            raise UserError(
                "with a state directory queries are registered first, and then the engine is "
                "started"
            )
        self.catalog = catalog
        self._functions = functions
        self._rankers = rankers
        self._recording = recording
        self._replicas = Replicas(clock=clock, progress=progress, recording=recording)
        self._until_end = until_end
        self._clock = clock
        self._observer = observer or Silent()
        self._open_runtime = functools.partial(open_runtime, runtime, spark)
        self._runtime: Runtime | None = None
        self._state = None if state is None else EngineState(state, self._observer)
        self._started = autostart if autostart is not None else state is None
        self._shares_recordings = not self._started
        self._waiting: list[tuple[RegisteredQuery, Bound]] = []
        self._texts: dict[str, dict[str, str]] = {}
        self._bounds: dict[str, Bound] = {}
        self._ended: dict[str, KeptUnit] = {}
        self._pipelines: list[Pipeline] = []
        self._units: dict[str, EvaluationSlot] = {}
        self._queries_of: dict[EvaluationSlot, list[RegisteredQuery]] = {}
        self._queries: dict[str, RegisteredQuery] = {}
        self._all: list[RegisteredQuery] = []
        self._news = AnswerSignal()
        self._lock = threading.RLock()
        self._scratch: TemporaryDirectory[str] | None = None

    @classmethod
    def from_catalog(
        cls,
        path: str | Path,
        *,
        runtime: str = "spark",
        until_end: bool = False,
        spark: SparkSession | SparkSettings | None = None,
        variables: Mapping[str, str] | None = None,
        functions: FunctionRegistry = DEFAULT_FUNCTIONS,
        rankers: RankerRegistry = DEFAULT_RANKERS,
        progress: Progress | None = None,
        observer: Observer | None = None,
        state: Path | None = None,
        autostart: bool | None = None,
    ) -> Self:
        """Return an engine for a catalog file; ``variables`` are values for ``${NAME}`` in it."""
        catalog = Catalog.load(path, variables=variables, rankers=rankers)
        return cls(
            catalog,
            runtime=runtime,
            until_end=until_end,
            spark=spark,
            functions=functions,
            rankers=rankers,
            progress=progress,
            observer=observer,
            state=state,
            autostart=autostart,
        )

    # Queries --------------------------------------------------------------------------------------

    def register(
        self,
        text: str,
        *,
        name: str | None = None,
        file: str = "<query>",
        sinks: Sequence[Sink] = (),
        backlog: int | None = None,
    ) -> RegisteredQuery:
        """Compile a query, fill its replicas, and run it; ``sinks`` get its answers.

        ``backlog`` replaces ``BACKLOG``, the number of answers that may wait to be read. Use 0 if
        only sinks read them. Raises :class:`~rspql.diagnostics.QueryError` for errors in the text,
        and :class:`~acquatop.errors.EnvironmentProblem` if the remote cannot be reached.
        """
        bound = bind_query(text, self.catalog, functions=self._functions, file=file, name=name)
        return self._run(bound, text, sinks, backlog)

    def run(self, bound: Bound, *, sinks: Sequence[Sink] = ()) -> RegisteredQuery:
        """Run a query that is bound already; :meth:`register` compiles and binds a text."""
        return self._run(bound, repr(bound.plan), sinks)

    def start(self) -> None:
        """Start the waiting queries together. Safe to call again."""
        if self._started:
            return
        self._started = True
        waiting, self._waiting = self._waiting, []
        if self._state is not None:
            self._state.open(self._manifest())
        for query, bound in waiting:
            self._put_to_work(query, bound)
        if self._state is not None:
            self._take_up(self._state)
        for pipeline in list(self._pipelines):
            self._carry(pipeline)

    def _manifest(self) -> dict[str, str]:
        """Return the texts that must not change while state is kept.

        They are those of the running and waiting queries, and of their streams.
        """
        with self._lock:
            running = [name for name, query in self._queries.items() if not query.stopped]
            return {name: text for query in running for name, text in self._texts[query].items()}

    def answers(self, limit: int | None = None) -> Iterator[Answer]:
        """Yield the answers of all queries registered so far, in their order of arrival."""
        return merged(list(self._queries.values()), self._news, limit)

    def _run(
        self, bound: Bound, text: str, sinks: Sequence[Sink], backlog: int | None = None
    ) -> RegisteredQuery:
        bound = replace(bound, name=self._free_name(bound.name))
        query = RegisteredQuery(
            bound.name,
            [stream.iri for stream in bound.streams],
            live=not self._until_end,
            news=self._news,
            sinks=sinks,
            backlog=backlog,
            leave=self._stopped,
        )
        with self._lock:
            self._queries[query.name] = query
            streams = {f"stream {stream.iri}": _description(stream) for stream in bound.streams}
            self._texts[query.name] = {f"query {query.name}": text, **streams}
            self._bounds[query.name] = bound
            self._observer.query(query.name, QueryState.REGISTERED)
            if not self._started:
                self._waiting.append((query, bound))
        try:
            if not self._started:
                # A query that can be shared has no replica, and the other queries are not known
                # yet.
                if self._state is None and not can_share(bound):
                    self._unit(bound)  # fills its replicas; with a state they may be filled already
                return query
            if self._state is not None:
                self._state.declare(self._manifest())
            for pipeline in self._put_to_work(query, bound):
                self._carry(pipeline)
        except BaseException:
            query.stop()
            raise
        return query

    def _free_name(self, name: str) -> str:
        """Return a name that no running query has, as answers are identified by it."""
        with self._lock:
            taken = {each for each, query in self._queries.items() if not query.stopped}
            return next(
                each
                for each in (name, *(f"{name}-{at}" for at in range(2, len(taken) + 3)))
                if each not in taken
            )

    # Evaluation of queries ------------------------------------------------------------------------

    def _put_to_work(self, query: RegisteredQuery, bound: Bound) -> list[Pipeline]:
        """Assign a query to its unit and pipelines; return the new pipelines, to be carried."""
        unit = self._unit(bound)
        with self._lock:
            self._queries_of.setdefault(unit, []).append(query)
        query.slide_ms = (
            bound.windows.slide_ms if isinstance(bound, BoundQuery) else unit.work.slide_ms
        )
        goes_on = (
            self._state is not None
            and self._state.part(unit.key) is not None
            and unit.work.resume_query(bound)
        )
        new = []
        for stream in bound.streams:
            running = self._running(stream)
            if running is not None and goes_on:
                running.go_on(unit)
            elif running is None or not running.join(unit, bound):
                new.append(self._new_pipeline(stream, unit, bound, goes_on=goes_on))
        return new

    def _unit(self, bound: Bound) -> EvaluationSlot:
        """Return the unit that evaluates a query, shared with other queries if possible."""
        is_shared = self._is_shared(bound)
        key = self._key(bound, shared=is_shared)
        if self._state is not None:
            self._state.check(bound.name, key)
        with self._lock:
            if key not in self._units:
                kept = None if self._state is None else self._state.part(key)
                work = open_evaluation(
                    bound, key, self._resources, load=kept is None, shared=is_shared
                )
                if kept is not None:
                    work.resume(kept)
                self._units[key] = EvaluationSlot(key, work)
            return self._units[key]

    def _key(self, bound: Bound, *, shared: bool) -> str:
        key = evaluation_key(bound, shared=shared)
        return key if self._reads_together else f"{key} {bound.name}"

    def _is_shared(self, bound: Bound) -> bool:
        """Return True if a query is evaluated in one structure with others.

        A resumed query is evaluated as before. If a shared structure exists already, a new query
        joins it. Otherwise the cheaper choice is taken.
        """
        if not can_share(bound):
            return False
        key = self._key(bound, shared=True)
        is_kept = None if self._state is None else self._state.is_kept(bound.name, key)
        with self._lock:
            if bound.stream.strategy is not None:
                return choice_among(bound).is_shared
            if is_kept is not None or key in self._units:
                return is_kept is not False
            running = [
                name
                for name, query in self._queries.items()
                if not query.stopped and name != bound.name
            ]
            others = [self._bounds[name] for name in running]
        alike = [each for each in others if can_share(each) and self._key(each, shared=True) == key]
        return choice_among(bound, alike).is_shared

    @property
    def _reads_together(self) -> bool:
        """True if queries share one reading of a stream."""
        return not self._until_end or self._shares_recordings

    def _running(self, stream: Stream) -> Pipeline | None:
        if not self._reads_together:
            return None
        return next(
            (each for each in self._pipelines if each.stream.iri == stream.iri and not each.ended),
            None,
        )

    def _new_pipeline(
        self, stream: Stream, unit: EvaluationSlot, bound: Bound, *, goes_on: bool
    ) -> Pipeline:
        pipeline = Pipeline(
            stream,
            self,
            self._observer,
            clock=self._clock,
            live=not self._until_end,
            recording=self._recording,
        )
        kept = None if self._state is None else self._state.stream(stream.iri)
        if kept is not None:
            pipeline.resume(kept)
        if goes_on:
            pipeline.go_on(unit)
        else:
            pipeline.join(unit, bound)
        self._pipelines = [each for each in self._pipelines if not each.ended] + [pipeline]
        return pipeline

    def _carry(self, pipeline: Pipeline) -> None:
        # Opened only now, so that errors of a query or a remote are raised before Spark starts.
        self._runtime = self._runtime or self._open_runtime()
        resume = None
        if self._state is not None:
            resume = Resume(self._state.folder(pipeline.stream.iri), pipeline.position)
        carrier = self._runtime.carry(
            pipeline.stream, pipeline, until_end=self._until_end, resume=resume
        )
        carrier.start()
        pipeline.attach(carrier)

    @property
    def _resources(self) -> Resources:
        return Resources(
            self._replicas,
            self._clock,
            self._rankers,
            self._map,
            self._keys_folder,
            durable=self._state is not None,
        )

    def _keys_folder(self, key: str) -> Path:
        """Return the folder for the keys that executors keep for an evaluation."""
        if self._state is not None:
            return self._state.keys_folder(key)
        self._scratch = self._scratch or TemporaryDirectory(
            prefix="acquatop-", ignore_cleanup_errors=True
        )
        return Path(self._scratch.name) / hashlib.sha256(key.encode()).hexdigest()[:16]

    def _map(self, task: BucketTask, buckets: Sequence[Bucket]) -> Sequence[BucketFound]:
        self._runtime = self._runtime or self._open_runtime()
        return self._runtime.map(task, buckets)

    def _take_up(self, state: EngineState) -> None:
        """Resume from the state of a former engine."""
        self.give(state.answers(), repeated=True)
        streams = {pipeline.stream.iri: pipeline for pipeline in self._pipelines}
        for stream, entry in state.journal():
            if stream in streams and (answers := streams[stream].replay(entry, self._units)):
                self._save(answers)
                self.give(answers)
        state.forget()

    # Callbacks of pipelines -----------------------------------------------------------------------

    def turn(self) -> AbstractContextManager[object]:
        """Return the context to hold while a batch changes state that is kept."""
        return nullcontext() if self._state is None else self._state.turn()

    @property
    def keeps(self) -> bool:
        """True if the engine keeps state."""
        return self._state is not None

    def keep(
        self, stream: str, position: Position, entry: Mapping[str, bytes], answers: Sequence[Answer]
    ) -> float:
        """Make a batch durable: with an entry in the journal, or with a snapshot.

        A journal entry is sufficient if no window has closed.
        """
        if self._state is None:
            return 0.0
        started = self._clock()
        if not entry or not self._state.append(stream, entry):
            self._save(answers)
        return self._clock() - started

    def _save(self, answers: Sequence[Answer]) -> None:
        assert self._state is not None
        streams = {pipeline.stream.iri: pipeline.state() for pipeline in self._pipelines}
        # Queries may be removed by other threads meanwhile, and their units with them.
        units = _going(list(self._units.values()))
        self._state.save(streams, {**self._ended, **self._kept(units)}, answers)
        for unit in units:
            unit.work.snapshot_committed()
        for pipeline in self._pipelines:
            pipeline.saved()

    def _kept(self, units: Sequence[EvaluationSlot]) -> dict[str, KeptUnit]:
        """Return the state of those units that have begun and have not failed."""
        return {unit.key: KeptUnit(unit.work.names, unit.work.snapshot()) for unit in _going(units)}

    def give(self, answers: Sequence[Answer], *, repeated: bool = False) -> None:
        """Give answers to their sinks and readers."""
        # Looked up once, as a query may be removed meanwhile.
        queries = {
            name: query
            for name in {each.query for each in answers}
            if (query := self._queries.get(name))
        }
        wanted = [answer for answer in answers if answer.query in queries]
        for answer in wanted:
            held = self._held(queries[answer.query])
            self._observer.answer(AnswerSeen(answer=answer, repeated=repeated, **held))
        for sink in {
            id(sink): sink for answer in wanted for sink in queries[answer.query].sinks
        }.values():
            self._write(
                sink, [answer for answer in wanted if sink in queries[answer.query].sinks], queries
            )
        for answer in wanted:
            queries[answer.query].put(answer)

    def _held(self, query: RegisteredQuery) -> dict[str, int]:
        # Without the lock, as it is held while replicas are filled.
        unit = next(
            (unit for unit, queries in list(self._queries_of.items()) if query in queries), None
        )
        if unit is None:
            return {}
        return unit.work.sizes(query.name)._asdict()

    def _write(
        self, sink: Sink, answers: Sequence[Answer], queries: Mapping[str, RegisteredQuery]
    ) -> None:
        try:
            sink.write(answers)
        except Exception as error:
            self._observer.failed(f"sink {type(sink).__name__}", error)
            if self._state is not None:
                # The state must not get ahead of a sink. The run ends here, and resumes from here.
                raise
            for name in {answer.query for answer in answers}:
                self._fail(queries[name], error)

    def wants(self, unit: EvaluationSlot) -> bool:
        """Return True if any running query needs the answers of a unit."""
        return any(not query.stopped for query in self._queries_of.get(unit, ()))

    def failed(self, unit: EvaluationSlot, error: BaseException) -> None:
        """End the queries of a unit that has failed."""
        for query in list(self._queries_of.get(unit, ())):
            self._fail(query, error)

    def _fail(self, query: RegisteredQuery, error: BaseException) -> None:
        self._observer.failed(f"query {query.name}", error)
        query.finish(error)
        self._observer.query(query.name, QueryState.FAILED)
        self._forget(query)

    def stream_ended(
        self, stream: str, units: Sequence[EvaluationSlot], error: BaseException | None
    ) -> None:
        """Continue without a stream.

        Queries with no other stream end. After an error, all queries of the stream end.
        """
        if error is not None:
            self._observer.failed(f"stream <{stream}>", error)
        if self._state is not None:
            self._keep_ended(stream, units, error)
        for unit in units:
            for query in list(self._queries_of.get(unit, ())):
                if query.stream_ended(stream) or error is not None:
                    query.finish(error)
                    self._observer.query(
                        query.name, QueryState.ENDED if error is None else QueryState.FAILED
                    )
                    self._forget(query)

    def _keep_ended(
        self, stream: str, units: Sequence[EvaluationSlot], error: BaseException | None
    ) -> None:
        """Keep the state of queries that end with a stream when the others' state is written."""
        assert self._state is not None
        if error is not None:
            # Other streams would continue without the queries. These could not resume from state
            # written then.
            self._state.freeze(error)
            return
        with self._state.turn():
            self._ended |= self._kept(units)

    # Shutdown -------------------------------------------------------------------------------------

    def _stopped(self, query: RegisteredQuery) -> None:
        """Remove a query that its owner has stopped."""
        self._observer.query(query.name, QueryState.REMOVED)
        with self._lock:
            units = [unit for unit, queries in self._queries_of.items() if query in queries]
        for unit in units:
            for pipeline in self._pipelines:
                pipeline.leave(unit, query.name)
        self._forget(query)
        with self._lock:
            # Removed queries must leave nothing behind.
            if self._queries.get(query.name) is query:
                del self._queries[query.name], self._texts[query.name], self._bounds[query.name]
        if self._state is not None and self._started:
            self._state.declare(self._manifest())

    def _forget(self, query: RegisteredQuery) -> None:
        """Release everything that only a certain query needs."""
        with self._lock:
            for unit, queries in list(self._queries_of.items()):
                if query in queries:
                    queries.remove(query)
                    if not queries:
                        del self._queries_of[unit]
                        self._units = {
                            key: each for key, each in self._units.items() if each is not unit
                        }
                        unit.work.close()

    def stop(self) -> None:
        """Stop all queries and streams after the batches at hand; iterators over answers end.

        Safe to call again.
        """
        for pipeline in self._pipelines:
            pipeline.is_stopped = True
        for pipeline in self._pipelines:
            if pipeline.carrier is not None:
                pipeline.carrier.stop()
        try:
            self._leave_state()
        finally:
            self._end_all()

    def _leave_state(self) -> None:
        """Write the final state, and release it for another engine."""
        if self._state is None:
            return
        try:
            with self._state.turn():
                if self._state.is_behind and (self._units or self._ended):
                    self._save(())
        finally:
            self._state.close()

    def _end_all(self) -> None:
        for query in list(self._queries.values()):
            if not query.stopped:
                query.finish(None)
                self._observer.query(query.name, QueryState.ENDED)
        self._pipelines.clear()
        for unit in self._units.values():
            unit.work.close()
        self._units.clear()
        self._queries_of.clear()
        self._replicas.close()
        if self._runtime is not None:
            self._runtime.close()
            self._runtime = None
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def _going(units: Sequence[EvaluationSlot]) -> list[EvaluationSlot]:
    """Return the units that have begun and have not failed."""
    return [unit for unit in units if unit.has_begun and unit.error is None]


def _description(stream: Stream) -> str:
    """Return the settings of a stream that must not change while its state is kept."""
    options = CONNECTORS[stream.connector].options
    said = {
        "connector": stream.connector,
        **{
            name: stream.options.get(name)
            for name, option in options.items()
            if option.names_source
        },
        "mapping": stream.mapping,
        "arrivals": stream.arrivals,
        "lateness_ms": stream.lateness_ms,
        "start_ms": stream.start_ms,
    }
    return "\n".join(f"{name}: {value}" for name, value in said.items())
