"""In-process runtime: a thread per stream drives the connector's reader, without Spark and Java."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from acquatop.catalog.catalog import Stream
from acquatop.errors import UserError
from acquatop.runtime import Batch, Consumer, Item, Position, Result, Resume
from acquatop.runtime.sources import (
    RepeatedMessages,
    how_far,
    log_nearly_full,
    reader_of,
    release_data,
    status_of,
)
from connectors.divisible import Divisible, cut, step
from connectors.live import LiveReader
from connectors.registry import SPARK
from connectors.source_status import SourceStatus

POLL_SECONDS = 0.005
"""Seconds to wait before polling a source again that had nothing new."""

BATCH_ROWS, BATCH_BYTES = 1 << 17, 8 << 20
"""Size of a batch unless the stream's options say it: larger ones are hardly faster."""
_LIMITS = frozenset({"maxRowsPerBatch", "maxBytesPerBatch"})


class LocalRuntime:
    """Runtime that carries streams in threads of this process."""

    has_executors = False

    def carry(
        self, stream: Stream, consumer: Consumer, *, until_end: bool, resume: Resume | None
    ) -> LocalCarrier:
        """Return a carrier of a stream."""
        return LocalCarrier(stream, consumer, until_end, resume)

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> Sequence[Result]:
        """Apply a function to the items one by one, so that one item's memory is freed in time."""
        return [function(item) for item in items]

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


@dataclass(frozen=True)
class _Rows:
    """Rows of a batch, by partition, and how far the source has been read then."""

    end: Any
    partitions: deque[list[pa.RecordBatch]]
    done: tuple[int | None, int | None]
    seconds: float


class LocalCarrier:
    """One stream and the thread that reads it.

    Of a recording, another thread reads the next batch while one is worked on, and no more.
    """

    def __init__(
        self, stream: Stream, consumer: Consumer, until_end: bool, resume: Resume | None
    ) -> None:
        self._consumer = consumer
        self._until_end = until_end
        self._is_durable = resume is not None
        self._position = None if resume is None else resume.position
        self._stopping = threading.Event()
        if stream.connector == SPARK.name:
            hint = (
                'leave out --runtime local (runtime="local"), or record the stream in files '
                "and read those"
            )
            raise UserError(
                f"<{stream.iri}> is read by a source of Spark's, which needs Spark\n  hint: {hint}"
            )
        self._reader = reader_of(stream.connector, dict(stream.options))
        self._iri = stream.iri
        # What a live source has received may be released while it is read.
        self._reads_ahead = until_end and not isinstance(self._reader, LiveReader)
        self._is_cut = not _LIMITS & stream.options.keys() and isinstance(self._reader, Divisible)
        self._thread = threading.Thread(
            target=self._run, name=f"acquatop-{stream.iri}", daemon=True
        )

    def start(self) -> None:
        """Start to read the stream."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the stream after the batch at hand."""
        self._stopping.set()
        self._consumer.release()
        if self._thread.ident is not None:
            self._thread.join()

    def forget(self, position: Position) -> None:
        """Let the source discard data up to a position."""
        release_data(self._reader, position["offset"])

    tells_status = True

    def status(self) -> SourceStatus | None:
        """Return the status of the source."""
        return status_of(self._reader)

    def _run(self) -> None:
        try:
            try:
                self._read()
            finally:
                self._reader.stop()
        except BaseException as error:
            self._consumer.end(error)
        else:
            self._consumer.end(None)

    def _read(self) -> None:
        if self._until_end:
            self._reader.prepareForTriggerAvailableNow()
        offset, number = self._reader.initialOffset(), 0
        if self._position is not None:
            offset, number = self._position["offset"], self._position["batch"] + 1
        repeated = RepeatedMessages(self._reader)
        with ThreadPoolExecutor(1, f"acquatop-reader-{self._iri}") as pool:
            ahead: Future[_Rows] | None = None
            while not self._stopping.is_set():
                rows = self._rows(offset) if ahead is None else ahead.result()
                if rows.end == offset:
                    if self._until_end:
                        return
                    self._stopping.wait(POLL_SECONDS)
                    continue
                self._consumer.wait()
                if self._stopping.is_set():
                    return
                # Only that thread uses the reader from now on.
                ahead = pool.submit(self._rows, rows.end) if self._reads_ahead else None
                self._consumer.take(self._batch(rows, number, repeated))
                offset, number = rows.end, number + 1
                if not self._is_durable:
                    release_data(self._reader, offset)

    def _rows(self, offset: Any) -> _Rows:
        """Read the next batch; there are no partitions if there is nothing new."""
        started = time.perf_counter()
        end = self._next(offset)
        partitions = [] if end == offset else self._reader.partitions(offset, end)
        rows = deque(list(self._reader.read(part)) for part in partitions)
        done = how_far(self._reader, end, self._until_end)
        return _Rows(end, rows, done, time.perf_counter() - started)

    def _next(self, offset: Any) -> Any:
        """Return how far the next batch reads.

        What is mixed is read as planned, as the cut decides what of it comes too late.
        """
        planned = self._reader.latestOffset(offset, self._reader.getDefaultReadLimit())
        if not self._is_cut or planned == offset or self._reader.is_mixed(offset, planned):
            return planned
        return cut(
            self._reader,
            offset,
            planned,
            BATCH_ROWS if step(self._reader).counts_rows else BATCH_BYTES,
        )

    def _batch(self, rows: _Rows, number: int, repeated: RepeatedMessages) -> Batch:
        started = time.perf_counter()
        job = self._consumer.job()
        partitions = []
        while rows.partitions:
            # Rows are let go as soon as they have been reduced.
            partitions.append(list(job(rows.partitions.popleft())))
        position = {"batch": number, "offset": rows.end}
        seconds = rows.seconds + time.perf_counter() - started
        is_full = log_nearly_full(self._reader, rows.end)
        return Batch(position, partitions, seconds, *rows.done, is_full, repeated.since_last())
