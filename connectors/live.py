"""Streams that say everything once: what comes is made durable first, acknowledged then, and read from there.

A connector for such a stream supplies a :class:`LiveSource`; everything else is the same for all of them:

- A thread, the *receiver*, of the process that plans the batches appends what comes to a log on a local disk
  (:mod:`connectors.log`), many records at a time, and acknowledges them when the disk has them. It begins with the
  first question for something new and ends with the stream. On Spark that process is the reader's own; in process it
  is the engine's. One receiver per log: another waits for its end, and gives up after half a minute.
- Offsets are positions in the log. So batches can be planned, read and read again like those of a file, also by other
  processes that see the folder.
- What has been committed is removed from the log, a segment at a time. Who keeps more than its newest state says itself
  from where on it needs the log (the option ``commits`` is ``owner`` then, and :meth:`LiveReader.release` is called).
- A log of ``maxLogBytes`` is full: nothing is received, and so nothing acknowledged, until something is committed.
  Nothing is ever thrown away.
"""

from __future__ import annotations

import copy
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxBytes, ReadMaxRows, SupportsTriggerAvailableNow

from connectors import ConnectorError
from connectors.log.folder import LogFolder
from connectors.log.position import Position
from connectors.log.reader import LogReader, Span
from connectors.log.writer import LogWriter, Remembered

LEAST_PARTITION = 4 << 20
"""How many bytes a partition has at least, unless it is all there is."""
MAX_BYTES_PER_BATCH = 64 << 20
MAX_LOG_BYTES = 1 << 30
LEAST_LOG_BYTES = 1 << 20
PRESSING = 3
"""Which part of the log may be full of what has been read."""
_WAIT_SECONDS = 0.2
"""How long a source waits for something at most before it looks whether it has to end."""
_FULL_SECONDS = 0.02
"""How long to wait before looking again whether a full log has room."""

Offset = dict[str, Any]


class LiveSource(ABC):
    """What comes once. Its methods are called by one thread, in the order: open, (receive, acknowledge)…, close.

    A source that is lost is reached again by the source itself, in :meth:`receive`; what it raises ends the stream.
    """

    schema: pa.Schema
    """The records' columns. The log adds ``position``, the record's number."""

    @abstractmethod
    def open(self, remembered: Remembered) -> None:
        """Reach the source; ``remembered`` is what one before this has logged, to tell what comes again."""

    @abstractmethod
    def receive(self, wait_seconds: float) -> pa.RecordBatch | None:
        """Return what has come since, a few megabytes at most; None if nothing has for so many seconds."""

    @abstractmethod
    def acknowledge(self) -> None:
        """Tell the source that it may forget all that :meth:`receive` has returned: it is durable."""

    @abstractmethod
    def close(self) -> None:
        """Take leave. May be called whatever has failed."""

    def is_caught_up(self) -> bool:
        """Say whether the source seems to have nothing more just now; ``Trigger.AvailableNow`` ends there."""
        return True

    def memory(self) -> bytes:
        """Return what must be known, besides the records to come, to tell what comes again."""
        return b""

    def has_forgotten(self) -> bool:
        """Say whether :meth:`memory` must be made durable before anything that comes now: once per occasion.

        Asked when :meth:`receive` has returned None.
        """
        return False


@dataclass(frozen=True)
class LogOptions:
    """The options that all live connectors have, see :func:`log_options`."""

    path: Path
    max_bytes: int = MAX_LOG_BYTES
    max_bytes_per_batch: int = MAX_BYTES_PER_BATCH
    max_partitions: int | None = None
    commits: str = "batch"


def log_options(connector: str, options: Mapping[str, str]) -> LogOptions:
    """Return what options say of the log; raises :class:`~connectors.ConnectorError`.

    - ``log``: a folder of its own on a local disk, which the executors see under the same path.
    - ``maxLogBytes``: how much may wait there, 1 GiB unless given. A log that is full receives nothing.
    - ``maxBytesPerBatch``: how much to read in one batch, 64 MiB unless given.
    - ``maxPartitions``: into how many parts, of 4 MiB at least, to cut a batch, one per core unless given.
    - ``commits``: ``batch`` if what a batch has read is let go when Spark commits it, ``owner`` if only on request.
    """
    path = options.get("log")
    if not path:
        raise ConnectorError(f'the connector "{connector}" needs the option log: a folder for what it has received')
    size = int(options.get("maxLogBytes", MAX_LOG_BYTES))
    if size < LEAST_LOG_BYTES:
        raise ConnectorError(f"the option maxLogBytes must be {LEAST_LOG_BYTES} at least")
    return LogOptions(
        path=Path(path),
        max_bytes=size,
        max_bytes_per_batch=int(options.get("maxBytesPerBatch", MAX_BYTES_PER_BATCH)),
        max_partitions=int(options.get("maxPartitions", "0")) or None,
        commits=options.get("commits", "batch"),
    )


class Receiver:
    """The thread between a source and its log."""

    def __init__(self, folder: LogFolder, source: Callable[[], LiveSource], max_bytes: int) -> None:
        self._folder = folder
        self._source = source
        self._max_bytes = max_bytes
        self._stopping = threading.Event()
        self._caught_up = threading.Event()
        self._error: BaseException | None = None
        self._end: Position | None = None
        self._thread = threading.Thread(target=self._run, name=f"receiver-{folder.path.name}", daemon=True)
        self._thread.start()

    def end(self) -> Position | None:
        """Return the position behind all that is durable, None before that is known; raises what has ended it."""
        if self._error is not None:
            raise self._error
        return self._end

    def finish(self) -> Position:
        """Return the position behind all that the source has now, and end."""
        self._caught_up.wait()
        self.stop()
        end = self.end()
        assert end is not None
        return end

    def stop(self) -> None:
        """End, and let go of the source and of the log."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            source = self._source()
            writer = LogWriter(self._folder, source.schema, self._max_bytes, stopping=self._stopping)
            self._end = writer.end
            try:
                source.open(writer.remembered)
                self._receive(source, writer)
            finally:
                source.close()
                writer.close()
        except BaseException as error:
            self._error = error
        finally:
            self._caught_up.set()

    def _receive(self, source: LiveSource, writer: LogWriter) -> None:
        while not self._stopping.is_set():
            if not writer.has_room():
                self._caught_up.set()
                self._stopping.wait(_FULL_SECONDS)
                continue
            records = source.receive(_WAIT_SECONDS)
            if records is not None:
                writer.append(records)
                self._end = writer.end
                source.acknowledge()
            elif source.is_caught_up():
                self._caught_up.set()
            if writer.is_long or (records is None and source.has_forgotten()):
                writer.remember(source.memory())


@dataclass
class LogPart(InputPartition):
    """Some blocks of a log."""

    spans: tuple[Span, ...]


class LiveReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads what a source has said, from where an offset says.

    Nothing is received before :meth:`latestOffset` or :meth:`prepareForTriggerAvailableNow` is called; until then it
    can be sent to other processes, where partitions are read.
    """

    def __init__(self, source: Callable[[], LiveSource], options: LogOptions) -> None:
        self._source = source
        self._options = options
        self._receiver: Receiver | None = None
        self._target: Position | None = None

    # Where the stream stands ------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802 (the name is PySpark's)
        """Return the offset behind what has been committed."""
        return self._reader().begin().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return how much one batch may hold."""
        return ReadMaxBytes(self._options.max_bytes_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Receive what the source has now, which is the end of the stream."""
        self._target = self._received().finish()
        self._receiver = None

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        """Return how far the next batch reads: what is durable, and no more than the limit, but one block at least."""
        end = self._target or self._received().end()
        begin = Position.from_json(start)
        if end is None:
            return start
        self._check(begin, end)
        if end.record == begin.record:
            return start
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        size = limit.max_bytes if isinstance(limit, ReadMaxBytes) else None
        return self._reader().limited(begin, end, rows, size).to_json()

    def commit(self, end: Offset) -> None:
        """Let go of what has been read, unless its owner says when."""
        if self._options.commits == "batch":
            self.release(end)

    def release(self, end: Offset) -> None:
        """Let go of what comes before an offset: nobody will ask for it again. Any process may say so."""
        self._folder().release(Position.from_json(end))

    def is_pressing(self, offset: Offset) -> bool:
        """Say whether so much is kept that has been read before an offset that it should be let go soon."""
        return self._reader().kept(Position.from_json(offset)) > self._options.max_bytes // PRESSING

    def up_to(self, end: Offset) -> Self:
        """Return a reader of the same log that ends at an offset."""
        reader = copy.copy(self)
        reader._target = Position.from_json(end)
        return reader

    def size(self, start: Offset, end: Offset) -> int:
        """Return how many bytes are between two offsets."""
        spans = self._reader().spans(Position.from_json(start), Position.from_json(end), LEAST_PARTITION)
        return sum(span.end - span.start for span in spans)

    def is_mixed(self, start: Offset, end: Offset) -> bool:
        """Say that there is one log."""
        return False

    def progress(self, offset: Offset) -> tuple[int, int | None]:
        """Return how many records have been read at an offset, and how many there are, if that is known."""
        return offset["record"], None if self._target is None else self._target.record

    def stop(self) -> None:
        """End the receiver."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None

    def _received(self) -> Receiver:
        if self._receiver is None:
            self._receiver = Receiver(self._folder(), self._source, self._options.max_bytes)
        return self._receiver

    def _check(self, begin: Position, end: Position) -> None:
        self._folder().check(begin)
        if begin.record > end.record:
            raise ConnectorError(
                f"the log in {self._options.path} ends before record {begin.record}, up to which it has been read\n"
                "  hint: put back what was removed, or begin anew with another checkpoint or state directory"
            )

    def _folder(self) -> LogFolder:
        return LogFolder(self._options.path)

    def _reader(self) -> LogReader:
        return LogReader(self._folder())

    # The records themselves -------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[LogPart]:
        """Return the records between two offsets, cut so that every core has some."""
        spans = self._reader().spans(Position.from_json(start), Position.from_json(end), LEAST_PARTITION)
        size = sum(span.end - span.start for span in spans)
        least = max(LEAST_PARTITION, size // (self._options.max_partitions or os.cpu_count() or 1))
        parts: list[list[Span]] = []
        room = 0
        for span in spans:
            if room <= 0:
                parts.append([])
                room = least
            parts[-1].append(span)
            room -= span.end - span.start
        return [LogPart(tuple(part)) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a partition's records as one Arrow batch."""
        assert isinstance(partition, LogPart)
        records = self._reader().read(partition.spans)
        if records is not None:
            yield records
