"""Work that is sent to executors."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from acquatop.catalog.catalog import Stream
from acquatop.ingest.reduce.job import Job
from acquatop.runtime.kept_values import SentWork
from acquatop.runtime.placement import sent_by
from acquatop.runtime.sources import (
    reader_of,
)

if TYPE_CHECKING:
    from pyspark.sql.datasource import InputPartition

Work = Callable[[Iterable[Any]], Iterator[Any]]
"""The function of a task: from its items to results."""


class InExecutors:
    """A stream's job as Spark wants it: the connector's partitions in, lists of parts as bytes out.

    If these are more than ``most`` bytes, their number is returned instead of them.
    """

    def __init__(self, stream: Stream, job: Job, most: int | None = None) -> None:
        self._connector = stream.connector
        self._options = dict(stream.options)
        self._job = job
        self._most = most

    def __call__(self, partitions: Iterable[InputPartition]) -> Iterator[list[bytes] | int]:
        """Do the job on some partitions."""
        reader = reader_of(self._connector, self._options)
        yield from sent_by(reader, partitions, self._job, self._most)


class Unpacking:
    """Work as it is sent to executors."""

    def __init__(self, sent: SentWork) -> None:
        self._sent = sent

    def __call__(self, items: Iterable[Any]) -> Iterator[Any]:
        """Unpack the work, and run it."""
        _freeze_modules()
        work: Work = self._sent.unpacked()
        return work(items)


_frozen = 0
"""Number of modules whose objects the garbage collector passes over."""


def _freeze_modules() -> None:
    """Let the garbage collector pass over what has been imported.

    PySpark collects garbage after each task. With all objects of all modules that takes as long as
    much of the work. What is garbage now has just been collected.
    """
    global _frozen
    if len(sys.modules) != _frozen:
        gc.freeze()
        _frozen = len(sys.modules)
