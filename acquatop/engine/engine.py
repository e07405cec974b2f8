"""Engine: registers queries, runs them on the streams of a catalog, and gives out their answers."""

from __future__ import annotations

import functools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

from acquatop.answer.answer import Answer
from acquatop.answer.window_lists import WindowLists
from acquatop.catalog.catalog import Catalog
from acquatop.catalog.given_frames import with_frames
from acquatop.engine.answers_streams.table import AnswersStreams
from acquatop.engine.commits import Committer
from acquatop.engine.delivery import Delivery
from acquatop.engine.handle import BACKLOG, RegisteredQuery, merged
from acquatop.engine.keys_folders import KeysFolders
from acquatop.engine.launcher import QueryLauncher
from acquatop.engine.lazy_runtime import LazyRuntime
from acquatop.engine.new_catalog import check_new_catalog
from acquatop.engine.observer import Observer, Silent
from acquatop.engine.persistence import EngineState
from acquatop.engine.queries import QueryRegistry
from acquatop.engine.slots import SlotTable
from acquatop.engine.state.place import RemotePlace, state_place
from acquatop.engine.stream_settings import StreamSettings
from acquatop.engine.streams import StreamTable
from acquatop.engine.surroundings import Surroundings
from acquatop.engine.waiting.board import WaitingBoard
from acquatop.engine.waiting.kinds import Waiting
from acquatop.errors import UserError
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import Bound
from acquatop.plan.weight import weighted
from acquatop.plan.whole_windows import in_whole_windows
from acquatop.plugins import RANKERS
from acquatop.query.kinds import Resources
from acquatop.refresh.open_replicas import Progress, Replicas
from acquatop.runtime import Runtime, check_runtime, open_runtime
from replica.clocks import Clock, SteadyTime
from replica.rankers import RankerRegistry
from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from acquatop.answer.sinks.contract import Sink
    from acquatop.catalog.spark_settings import SparkSettings
    from acquatop.engine.recorder import Recorder

__all__ = ["BACKLOG", "Engine", "RegisteredQuery"]


class Engine:
    """Engine that runs queries over the streams and services of a catalog.

    Use it as a context manager, or call :meth:`stop`. A query starts when it is registered. If
    ``autostart`` is False (the default with a ``state``), all queries start together with
    :meth:`start`. ``until_end`` reads only the present content of the streams and then closes all
    windows, for recordings.

    ``state`` is a folder, or ``s3://BUCKET/PREFIX``: an engine resumes there after a former one,
    however that ended. All
    queries that shall resume must be registered before the engine starts. ``spark`` is a
    session to use instead of one of the engine's own, or
    :class:`~acquatop.catalog.spark_settings.SparkSettings` for that one, in place of the catalog's.
    ``functions`` may be called in scores, and ``rankers`` may be named in policies; both may
    include your own. ``progress`` is called while a replica is loaded. ``observer`` is told of the
    engine's work. A ``recording`` records the stream and the remote of the one query that it was
    opened for. ``runtime`` is a name, or a :class:`~acquatop.runtime.Runtime` of your own;
    ``surroundings`` replace the clocks (``clock`` too), the randomness and the threads. ``streams``
    are DataFrames, by the IRIs of the streams whose rows they have: streaming ones, or, with
    ``until_end``, others as recordings. With ``show_lists`` every answer shows the candidates that
    were held of the open windows.

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
        runtime: str | Runtime = "spark",
        until_end: bool = False,
        spark: SparkSession | SparkSettings | None = None,
        clock: Clock = time.monotonic,
        functions: FunctionRegistry = DEFAULT_FUNCTIONS,
        rankers: RankerRegistry = RANKERS,
        progress: Progress | None = None,
        observer: Observer | None = None,
        state: Path | RemotePlace | str | None = None,
        autostart: bool | None = None,
        recording: Recorder | None = None,
        surroundings: Surroundings | None = None,
        streams: Mapping[str, DataFrame] | None = None,
        show_lists: bool = False,
    ) -> None:
        if streams:
            catalog = with_frames(catalog, streams)
            spark = spark or next(iter(streams.values())).sparkSession
        if isinstance(runtime, str):
            check_runtime(runtime, spark)
        around = surroundings or Surroundings(clock=clock)
        clock = around.clock
        if autostart and state is not None:
            raise UserError(
                "with a state directory queries are registered first, and then the engine is "
                "started"
            )
        self.catalog = catalog
        self._frames = streams
        self._functions = functions
        observer, durable = observer or Silent(), state is not None
        started = not durable if autostart is None else autostart
        settings = StreamSettings(
            clock,
            live=not until_end,
            durable=durable,
            reads_together=not until_end or not started,
            recording=recording,
            wall_clock=around.wall_clock,
            timer=around.timer,
        )
        kept = None
        if state is not None:
            kept = EngineState(state_place(state), observer, around.state_folder)
        self._runtime = LazyRuntime(functools.partial(open_runtime, runtime, spark, catalog.spark))
        self._replicas = Replicas(
            clock=clock,
            now=SteadyTime(around.wall_clock, clock),
            progress=progress,
            random=around.random,
            recording=recording,
            wall_clock=around.wall_clock,
            machine=around.machine,
            workers=around.workers,
            open_feed=around.open_feed,
            goes_on_elsewhere=kept is not None and kept.is_remote,
            shares=settings.reads_together,
        )
        self._folders = KeysFolders(kept)
        resources = Resources(
            self._replicas,
            clock,
            rankers,
            self._runtime.map,
            self._folders.folder,
            durable=durable,
            has_executors=lambda: self._runtime.has_executors,
            limits=catalog.evaluation,
            open_sparql=around.open_sparql,
        )
        self._slots = SlotTable(
            resources,
            kept,
            reads_together=settings.reads_together,
            shows_lists=show_lists,
        )
        self._queries = QueryRegistry(self._slots, observer, live=not until_end)
        self._committer = Committer(kept, self._slots, clock)
        delivery = Delivery(
            self._queries, self._slots, observer, durable=durable, check=self._committer.check
        )
        answers = AnswersStreams(self._queries, self._slots, self._committer, kept, settings)
        self._streams = StreamTable(
            self._runtime, self._committer, delivery, observer, kept, settings, answers
        )
        self._board = WaitingBoard(
            self._queries,
            self._streams.drivers,
            around.wall_clock,
            "Spark" if runtime == "spark" else "the runtime",
        )
        self._launcher = QueryLauncher(
            self._queries,
            self._slots,
            self._streams,
            delivery,
            kept,
            started=started,
            in_whole_windows=lambda bound: in_whole_windows(bound, self.known),
        )

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
        rankers: RankerRegistry = RANKERS,
        progress: Progress | None = None,
        observer: Observer | None = None,
        state: Path | RemotePlace | str | None = None,
        autostart: bool | None = None,
        streams: Mapping[str, DataFrame] | None = None,
        show_lists: bool = False,
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
            streams=streams,
            show_lists=show_lists,
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
        weight: float = 1.0,
    ) -> RegisteredQuery:
        """Compile a query, fill its replicas, and run it; ``sinks`` get its answers.

        Of a service's budget that queries share it gets a part by its ``weight``. ``backlog``
        replaces ``BACKLOG``, the number of answers that may wait to be read. Use 0 if
        only sinks read them. A query that reads the answers of another is registered after it.
        Raises :class:`~rspql.diagnostics.QueryError` for errors in the text, and
        :class:`~acquatop.errors.EnvironmentProblem` if the remote cannot be reached.
        """
        known = self.known
        bound = bind_query(text, known, functions=self._functions, file=file, name=name)
        bound = weighted(bound, weight)
        return self._launcher.register(bound, text, sinks, backlog)

    def reload(self, catalog: Catalog) -> None:
        """Use another catalog for queries that are registered from now on.

        Raises :class:`~acquatop.errors.UserError` if it changes what a running query uses, or
        settings that are read at the start.
        """
        if self._frames:
            catalog = with_frames(catalog, self._frames)
        check_new_catalog(self.catalog, catalog, self._queries.running())
        self.catalog = catalog

    def run(self, bound: Bound, *, sinks: Sequence[Sink] = ()) -> RegisteredQuery:
        """Run a query that is bound already; :meth:`register` compiles and binds a text."""
        return self._launcher.register(bound, repr(bound.plan), sinks, None)

    def start(self) -> None:
        """Start the waiting queries together. Safe to call again."""
        self._launcher.start()

    def answers(self, limit: int | None = None) -> Iterator[Answer]:
        """Yield the answers of all queries registered so far, in their order of arrival."""
        return merged(self.queries, self._queries.signal, limit)

    def __repr__(self) -> str:
        """Return the streams and the queries, by name."""
        return (
            f"<Engine streams={[*self.catalog.streams]} queries={[q.name for q in self.queries]}>"
        )

    @property
    def queries(self) -> Sequence[RegisteredQuery]:
        """The queries registered so far, without those that were stopped by their handle."""
        return list(self._queries)

    @property
    def known(self) -> Catalog:
        """The catalog, with the streams that registered queries make of their answers."""
        return self._queries.with_answers(self.catalog)

    def readers(self, name: str) -> Sequence[str]:
        """Return the names of the running queries that read the answers of one."""
        return [each.name for each in self._queries.readers(name)]

    @property
    def groups(self) -> Sequence[Sequence[str]]:
        """The names of the queries at work, those together that are evaluated together."""
        return [[query.name for query in slot.queries] for slot in self._slots]

    def lists(self, name: str) -> Sequence[WindowLists]:
        """Return the K-list and the N-list of each open window of a query that runs.

        Top-k queries by themselves over one window of time, without aggregates, have them.
        """
        query = self._queries.get(name)
        slot = None if query is None else self._slots.of(query)
        return () if slot is None else slot.lists(name)

    def waiting(self) -> Mapping[str, Waiting]:
        """Return the thing that each running query waits for now, by name. Any thread may ask."""
        return self._board.now()

    def check_state(self) -> None:
        """Raise an error if nothing can be kept any more: something has failed, or another engine
        has the state.
        """
        self._committer.check()

    # Shutdown -------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop all queries and streams after the batches at hand; iterators over answers end.

        Safe to call again.
        """
        self._streams.stop()
        try:
            self._committer.close()
        finally:
            self._queries.end_all()
            self._streams.clear()
            self._slots.close()
            self._replicas.close()
            self._runtime.close()
            self._folders.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
