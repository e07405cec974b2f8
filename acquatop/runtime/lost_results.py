"""Jobs whose results have been lost in the driver: they would never end, so they are ended.

Threads of the driver's Java fetch what tasks send. One that runs out of memory dies, and Spark has
nobody who tells the job: the task counts as one whose result is under way for ever. A Java that an
engine starts ends itself then; this is for those that others have started.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from acquatop.errors import EnvironmentProblem

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AFTER_SECONDS, EVERY_SECONDS = 15.0, 2.0
"""Seconds before a job is checked for the first time, and between checks."""

_GROUP = "spark.jobGroup.id"
_THREADS, _FETCHING = "task-result-getter", "TaskResultGetter"
"""The names of the threads that fetch, and the class that they are in as long as they do."""
_MOST_TASKS = 100_000


@contextmanager
def ended_if_lost(spark: SparkSession) -> Iterator[None]:
    """Cancel the block's jobs if their results are lost, and raise an error that says so."""
    context = spark.sparkContext
    before = context.getLocalProperty(_GROUP)
    group = before or f"acquatop-{uuid4().hex}"
    watch = _Watch(spark, group)
    watch.start()
    if before is None:
        context.setLocalProperty(_GROUP, group)
    try:
        yield
    except Exception as error:
        if watch.is_lost:
            raise EnvironmentProblem(
                "results have been lost in the driver, whose Java was out of memory"
            ) from error
        raise
    finally:
        watch.stop()
        if before is None:
            with suppress(Exception):  # the Java may have gone
                context.setLocalProperty(_GROUP, None)  # type: ignore[arg-type]  # removes it


class _Watch:
    """Watch over the jobs of a group, in a thread that begins when they take long."""

    def __init__(self, spark: SparkSession, group: str) -> None:
        self.is_lost = False
        self._spark = spark
        self._group = group
        self._done = threading.Event()
        self._timer = threading.Timer(AFTER_SECONDS, self._look)
        self._timer.daemon = True

    def start(self) -> None:
        """Begin to watch."""
        self._timer.start()

    def stop(self) -> None:
        """End the watch."""
        self._timer.cancel()
        self._done.set()

    def _look(self) -> None:
        before: frozenset[int] = frozenset()
        while not self._done.is_set():
            try:
                lost = lost_tasks(self._spark, self._group)
            except Exception:
                # The Java has gone, which ends the job as well; or a Spark that does not say it.
                return
            if lost & before:
                self.is_lost = True
                self._spark.sparkContext.cancelJobGroup(self._group)
                return
            before = lost
            self._done.wait(EVERY_SECONDS)


def lost_tasks(spark: SparkSession, group: str) -> frozenset[int]:
    """Return the numbers of tasks whose results are to be fetched, and nobody does.

    For a moment that may be so while all is well.
    """
    waiting = frozenset(_waiting(spark, group))
    return frozenset() if not waiting or _is_anyone_fetching(spark) else waiting


def _waiting(spark: SparkSession, group: str) -> Iterator[int]:
    context = spark.sparkContext
    tracker, store = context.statusTracker(), context._jsc.sc().statusStore()
    for job in tracker.getJobIdsForGroup(group):
        about = tracker.getJobInfo(job)
        for stage in about.stageIds if about is not None and about.status == "RUNNING" else ():
            tasks = store.taskList(stage, 0, _MOST_TASKS)
            yield from (task.taskId() for task in _each(tasks) if task.status() == "GET RESULT")


def _each(found: Any) -> Iterator[Any]:
    iterator = found.iterator()
    while iterator.hasNext():
        yield iterator.next()


def _is_anyone_fetching(spark: SparkSession) -> bool:
    java: Any = spark.sparkContext._jvm
    threads = java.java.lang.management.ManagementFactory.getThreadMXBean().dumpAllThreads(
        False, False
    )
    fetching = (thread for thread in threads if thread.getThreadName().startswith(_THREADS))
    return any(
        _FETCHING in frame.getClassName() for thread in fetching for frame in thread.getStackTrace()
    )
