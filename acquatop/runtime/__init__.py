"""Runtimes: they carry a stream's batches to the operators, which are the same for all runtimes.

``spark`` runs one Structured Streaming query per stream, and runs the streams' jobs in the
executors. ``local`` does the same work in threads of this process, for tests, replays and small
jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from acquatop.errors import EnvironmentProblem, UserError

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from acquatop.catalog.catalog import Stream
    from acquatop.catalog.spark_settings import SparkSettings
    from acquatop.ingest.reduce.contract import Part
    from acquatop.ingest.reduce.job import Job
    from connectors.source_status import SourceStatus

Item = TypeVar("Item")
Result = TypeVar("Result")

RUNTIMES = ("spark", "local")

Position = Mapping[str, Any]
"""Position in a stream, as JSON in its carrier's format; ``batch`` is the last batch's number."""


@dataclass(frozen=True)
class Batch:
    """Result of one batch: each partition's parts, and the position after the batch.

    ``done`` of ``total`` in the source has been read then, if known. ``log_nearly_full`` says that
    the source cannot hold much more data that has been read: a consumer that keeps its state should
    then write a full snapshot. ``repeated`` counts the messages that the source has dropped since
    the batch before, because they had come already.
    """

    position: Position
    partitions: Sequence[Sequence[Part]]
    seconds: float = 0.0
    done: int | None = None
    total: int | None = None
    log_nearly_full: bool = False
    repeated: int = 0


class JobAhead(Protocol):
    """Job for the batch behind one that is still to be taken."""

    @property
    def job(self) -> Job:
        """The job, with the values of now. Only :meth:`begin` says how late a record may be."""
        ...

    def begin(self) -> Job | None:
        """Return the job, as the next batch begins; None if the one before has been taken.

        Time may go on then, so :meth:`Consumer.job` has to be asked. Any thread may call it.
        """
        ...


class Consumer(Protocol):
    """Consumer of a stream's batches.

    Called by one thread at a time, except :meth:`release`. While a batch with a job ahead is taken,
    another thread may :meth:`wait` for the batch behind it.
    """

    def wait(self) -> None:
        """Return once the next batch may be taken: a stream must not be too far ahead of others."""
        ...

    def is_held(self) -> bool:
        """Return True if :meth:`wait` would not return yet; for runtimes without threads."""
        ...

    def release(self) -> None:
        """Let :meth:`wait` return, now and in future: the stream is to be stopped.

        No further batch is taken.
        """
        ...

    def job(self) -> Job:
        """Return the job to run on the next batch, at the place of its records."""
        ...

    def job_ahead(self, batch: Batch) -> JobAhead | None:
        """Return the job for the records behind a batch that is to be taken next.

        Return None if that batch has to be taken first, as it decides what is to be done.
        """
        ...

    def take(self, batch: Batch) -> None:
        """Process the job's result."""
        ...

    def end(self, error: BaseException | None) -> None:
        """Note the end of the stream, and the error that caused it, if any. Called once."""
        ...


class Carrier(Protocol):
    """A stream that is being carried, once it has been started."""

    def start(self) -> None:
        """Start to carry it."""
        ...

    def forget(self, position: Position) -> None:
        """Let the source discard data up to a position: nobody will resume from an earlier one.

        For consumers that keep their state. For others, data is discarded as soon as it is
        processed.
        """
        ...

    def stop(self) -> None:
        """Stop after the batch at hand. Returns when no further batch will come."""
        ...

    def status(self) -> SourceStatus | None:
        """Return the status of the source, None while it is unknown. Any thread may ask."""
        ...

    @property
    def tells_status(self) -> bool:
        """True if the status is only unknown until the source is read."""
        ...


@dataclass(frozen=True)
class Resume:
    """Point to resume a stream from: a position, and the folder with the carrier's own data.

    With ``moves`` the folder ends with this process: all that is needed has to be in the position.
    """

    folder: Path
    position: Position | None = None
    moves: bool = False


class Runtime(Protocol):
    """Runtime that carries streams until it is closed."""

    @property
    def has_executors(self) -> bool:
        """True if :meth:`map` computes in other processes, which have memory of their own."""
        ...

    def carry(
        self, stream: Stream, consumer: Consumer, *, until_end: bool, resume: Resume | None
    ) -> Carrier:
        """Start to carry a stream; with ``until_end`` only its present content, else endlessly.

        Without ``resume`` it starts at the stream's beginning.
        """
        ...

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Sequence[Result]:
        """Return a function's results for some items, in their order.

        Blocks until all are computed, where the records are decoded: in the executors or in this
        process. The function and the items must be picklable.
        """
        ...

    def close(self) -> None:
        """Release the runtime's resources. All its carriers must have been stopped."""
        ...


def check_runtime(name: str, spark: SparkSession | SparkSettings | None = None) -> None:
    """Raise :class:`UserError` unless a runtime has that name, and a use for settings of Spark.

    Raise :class:`EnvironmentProblem` if Spark is asked for and not installed.
    """
    from acquatop.catalog.spark_settings import SparkSettings

    if name not in RUNTIMES:
        raise UserError(f'there is no runtime "{name}": use {" or ".join(RUNTIMES)}')
    if name == "local" and isinstance(spark, SparkSettings) and spark:
        hint = 'use --runtime spark (runtime="spark"), or leave out --master and --conf'
        raise UserError(
            f"a master and settings are for Spark, which does not run here\n  hint: {hint}"
        )
    if name == "spark" and find_spec("pyspark") is None:
        raise EnvironmentProblem(
            "Spark is not installed\n"
            "  hint: install acquatop with its extra spark, or with java if there is no Java "
            'either; or use --runtime local (runtime="local")'
        )


def open_runtime(
    name: str | Runtime,
    spark: SparkSession | SparkSettings | None = None,
    usual: SparkSettings | None = None,
) -> Runtime:
    """Return the runtime of a name; one that is given is returned as it is.

    ``spark`` is an existing session to use, or settings for one of its own. The ``usual`` settings
    hold for what these leave open. They are not used where a session is there.
    """
    if not isinstance(name, str):
        return name
    check_runtime(name, spark)
    if name == "spark":
        from acquatop.runtime.spark import SparkRuntime

        return SparkRuntime(spark, usual)
    if name == "local":
        from acquatop.runtime.local import LocalRuntime

        return LocalRuntime()
    raise AssertionError("check_runtime lets only known names pass")
