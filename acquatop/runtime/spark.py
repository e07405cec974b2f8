"""Spark runtime: a carrier per stream, and tasks on executors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from acquatop.catalog.catalog import Stream
from acquatop.catalog.spark_settings import SparkSettings
from acquatop.runtime import Consumer, Item, Result, Resume
from acquatop.runtime.executors import ExecutorWatch
from acquatop.runtime.failures import said_by_spark
from acquatop.runtime.foreign_carrier import ForeignCarrier, RecordingCarrier
from acquatop.runtime.lost_results import ended_if_lost
from acquatop.runtime.session import open_session
from acquatop.runtime.spark_view import described
from acquatop.runtime.stream_carrier import SparkCarrier
from connectors.registry import SPARK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_TASKS_PER_CORE = 2
"""Number of tasks per core that share the items of a window."""

_WORKERS = 2
"""The number of Python workers that are started before the first batch."""


class SparkRuntime:
    """Runtime on a Spark session: the caller's, or else the running one, or else one of its own."""

    has_executors = True

    def __init__(
        self,
        spark: SparkSession | SparkSettings | None = None,
        usual: SparkSettings | None = None,
    ) -> None:
        self.session = open_session(spark, usual)
        self.spark = self.session.spark
        self._watch = ExecutorWatch(self.spark)
        try:
            with self._watch.over_all_work(), said_by_spark(self.session):
                _warm_up(self.spark)
        except BaseException:
            self.close()
            raise

    def carry(
        self, stream: Stream, consumer: Consumer, *, until_end: bool, resume: Resume | None
    ) -> SparkCarrier:
        """Start to carry a stream."""
        return _kind(stream)(self.session, stream, consumer, until_end, resume)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Sequence[Result]:
        """Apply a function to the items in the executors, a few tasks per core.

        A task takes its items one by one. A task per item would cost more than a small item does.
        """
        if not items:
            return []
        context = self.spark.sparkContext
        tasks = min(len(items), _TASKS_PER_CORE * context.defaultParallelism)
        with (
            said_by_spark(self.session),
            ended_if_lost(self.spark),
            described(self.spark, "tasks of a window"),
        ):
            return context.parallelize(items, tasks).map(function).collect()

    def close(self) -> None:
        """End what of Spark is this runtime's own."""
        self._watch.stop()
        self.session.close()


def _kind(stream: Stream) -> type[SparkCarrier]:
    if stream.connector != SPARK.name:
        return SparkCarrier
    is_recording = stream.frame is not None and not stream.frame.isStreaming
    return RecordingCarrier if is_recording else ForeignCarrier


def _warm_up(spark: SparkSession) -> None:
    """Load the operators in the executors, so that the first window does not wait for that."""
    spark.sparkContext.parallelize(range(_WORKERS), _WORKERS).mapPartitions(
        _load_operators
    ).collect()


def _load_operators(nothing: Iterable[int]) -> Iterator[int]:
    import acquatop.ingest.buckets.task
    import acquatop.ingest.reduce.pane_best
    import acquatop.ingest.reduce.pane_partials  # noqa: F401

    return iter(())
