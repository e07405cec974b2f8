"""Live streams: data that a source sends only once is logged, acknowledged, and read from the log.

A connector for such a stream supplies a :class:`~connectors.live_source.LiveSource`; everything
else is the same for all:

- A thread, the *receiver*, of the process that plans the batches appends received records to a log
  on a local disk (:mod:`connectors.log`), many at a time. It acknowledges them when they are on the
  disk. It starts with the first request for new data and ends with the stream. On Spark that
  process is the reader's own; in process it is the engine's. A log has one receiver: another one
  waits for its end, and gives up after half a minute.
- Offsets are positions in the log. Batches can be planned, read and read again like those of a
  file, also by other processes that see the folder.
- Committed records are removed from the log, one segment at a time. An owner that keeps more than
  its newest state sets the position from which it needs the log: the option ``commits`` is then
  ``owner``, and the owner calls :meth:`LiveReader.release`.
- With ``messageId`` messages that come again are dropped before the log
  (:mod:`connectors.unique`).
- A log of ``maxLogBytes`` is full: nothing is received, and so nothing acknowledged, until
  something is committed. Nothing is ever discarded.
"""

from __future__ import annotations

import copy
import functools
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import pyarrow as pa

from connectors import ConnectorError
from connectors.live_source import LiveSource
from connectors.log.folder import LogFolder
from connectors.log.position import Position
from connectors.log.reader import LogReader, RecordSpan
from connectors.log.writer import LogWriter
from connectors.message_identity import MessageIdentity
from connectors.read_limits import ALL, ReadLimit, ReadMaxBytes, ReadMaxRows, TriggerAvailableNow
from connectors.source_status import SourceState, SourceStatus
from connectors.spark_classes import DataSourceStreamReader, InputPartition
from connectors.unique import Uniqueness, UniqueSource

LEAST_PARTITION = 4 << 20
"""Minimum size of a partition in bytes; the last one of a batch may be smaller."""
MAX_BYTES_PER_BATCH = 64 << 20
MAX_LOG_BYTES = 1 << 30
LEAST_LOG_BYTES = 1 << 20
DUPLICATE_SECONDS = 3_600
"""Default of the time for which messages are remembered, to drop repeated ones."""
NEARLY_FULL = 3
"""Divisor of the log's limit: more consumed data than that share should be released soon."""
_WAIT_SECONDS = 0.2
"""Maximum time a source waits for data before it checks if it has to stop."""
_FULL_SECONDS = 0.02
"""Pause before checking again if a full log has room."""

Offset = dict[str, Any]


@dataclass(frozen=True)
class LogOptions:
    """Options of all live connectors, see :func:`log_options`."""

    path: Path
    max_bytes: int = MAX_LOG_BYTES
    max_bytes_per_batch: int = MAX_BYTES_PER_BATCH
    max_partitions: int | None = None
    commits: str = "batch"
    message_id: str | None = None
    duplicate_seconds: int = DUPLICATE_SECONDS


def log_options(connector: str, options: Mapping[str, str]) -> LogOptions:
    """Return the options of the log; raise :class:`~connectors.ConnectorError` if they are wrong.

    - ``log``: a folder for this log alone on a local disk, which executors see under the same path.
    - ``maxLogBytes``: maximum size of the log, 1 GiB by default. A full log receives nothing.
    - ``maxBytesPerBatch``: maximum size of one batch, 64 MiB by default.
    - ``maxPartitions``: maximum number of partitions, of 4 MiB at least, of a batch, one per core
      by default.
    - ``commits``: ``batch`` if Spark's commit of a batch releases its records, ``owner`` if only a
      request does.
    - ``messageId``: ``payload`` or ``field:NAME``, to drop messages that come again; none by
      default (:class:`~connectors.message_identity.MessageIdentity`).
    - ``duplicateWindow``: seconds for which messages are remembered for that, 3600 by default.
    """
    path = options.get("log")
    if not path:
        raise ConnectorError(
            f'the connector "{connector}" needs the option log: a folder for what it has received'
        )
    size = int(options.get("maxLogBytes", MAX_LOG_BYTES))
    if size < LEAST_LOG_BYTES:
        raise ConnectorError(f"the option maxLogBytes must be {LEAST_LOG_BYTES} at least")
    return LogOptions(
        path=Path(path),
        max_bytes=size,
        max_bytes_per_batch=int(options.get("maxBytesPerBatch", MAX_BYTES_PER_BATCH)),
        max_partitions=int(options.get("maxPartitions", "0")) or None,
        commits=options.get("commits", "batch"),
        message_id=options.get("messageId") or None,
        duplicate_seconds=int(options.get("duplicateWindow", DUPLICATE_SECONDS)),
    )


class Receiver:
    """Thread between a source and its log."""

    def __init__(self, folder: LogFolder, source: Callable[[], LiveSource], max_bytes: int) -> None:
        self._folder = folder
        self._source = source
        self._max_bytes = max_bytes
        self._stopping = threading.Event()
        self._caught_up = threading.Event()
        self._error: BaseException | None = None
        self._end: Position | None = None
        self._told: SourceStatus | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"receiver-{folder.path.name}", daemon=True
        )

    def start(self) -> None:
        """Start to receive."""
        self._thread.start()

    def end(self) -> Position | None:
        """Return the position after all durable records, None if it is not known yet.

        Raises the error that ended the receiver, if there is one.
        """
        if self._error is not None:
            raise self._error
        return self._end

    def finish(self) -> Position:
        """Return the position after all records that the source has now, and stop."""
        self._caught_up.wait()
        self.stop()
        end = self.end()
        assert end is not None
        return end

    def stop(self) -> None:
        """Stop, and release the source and the log."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            source = self._source()
            writer = LogWriter(
                self._folder, source.schema, self._max_bytes, stopping=self._stopping
            )
            self._end = writer.end
            try:
                self._tell(source.link.status)
                source.open(writer.remembered)
                self._receive(source, writer)
            finally:
                self._tell(None)
                source.close()
                writer.close()
        except BaseException as error:
            self._error = error
        finally:
            self._caught_up.set()

    def _receive(self, source: LiveSource, writer: LogWriter) -> None:
        while not self._stopping.is_set():
            if writer.is_long:
                # Only a segment that another follows can be removed.
                writer.remember(source.memory())
            if not writer.has_room():
                self._caught_up.set()
                self._tell(replace(source.link.status, state=SourceState.FULL, problem=""))
                self._stopping.wait(_FULL_SECONDS)
                continue
            records = source.receive(_WAIT_SECONDS)
            self._tell(source.link.status)
            if records is not None:
                writer.append(records)
                self._end = writer.end
                source.acknowledge()
            elif source.is_caught_up():
                self._caught_up.set()
            if records is None and source.has_forgotten():
                writer.remember(source.memory())

    def _tell(self, status: SourceStatus | None) -> None:
        """Write the status where other processes find it, if it has changed."""
        if status != self._told:
            self._told = status
            self._folder.write_status(status)


@dataclass
class LogPart(InputPartition):
    """Some blocks of a log."""

    spans: tuple[RecordSpan, ...]


class LiveReader(DataSourceStreamReader, TriggerAvailableNow):
    """Reader of a source's logged records, from an offset on.

    Nothing is received before :meth:`latestOffset` or :meth:`prepareForTriggerAvailableNow` is
    called. Until then the reader can be sent to other processes, which read partitions.
    """

    def __init__(self, source: Callable[[], LiveSource], options: LogOptions) -> None:
        self._uniqueness = _uniqueness(options)
        self._source = source
        self._options = options
        self._receiver: Receiver | None = None
        self._target: Position | None = None

    # Offsets ---------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:  # noqa: N802 (the name is PySpark's)
        """Return the offset after all committed records."""
        return self._reader().begin().to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return the limit of one batch."""
        return ReadMaxBytes(self._options.max_bytes_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Receive the records that the source has now, which are the end of the stream."""
        self._target = self._received().finish()
        self._receiver = None

    def latestOffset(  # noqa: N802
        self, start: Offset | None = None, limit: ReadLimit = ALL
    ) -> Offset:
        """Return the offset after the next batch.

        A batch has durable records, no more than the limit, but at least one block.
        """
        end = self._target or self._received().end()
        start = self.initialOffset() if start is None else start
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
        """Release the batch's records, unless the log's owner does that."""
        if self._options.commits == "batch":
            self.release(end)

    def release(self, end: Offset) -> None:
        """Release the records before an offset: they will not be read again.

        Any process may call it.
        """
        self._folder().release(Position.from_json(end))

    def log_nearly_full(self, offset: Offset) -> bool:
        """Return True if so much data before an offset is kept that it should be released soon."""
        return (
            self._reader().kept(Position.from_json(offset)) > self._options.max_bytes // NEARLY_FULL
        )

    def repeated(self) -> int:
        """Return the number of repeated messages that were dropped so far."""
        return 0 if self._uniqueness is None else self._folder().repeated()

    def up_to(self, end: Offset) -> Self:
        """Return a reader of the same log that ends at an offset."""
        reader = copy.copy(self)
        reader._target = Position.from_json(end)
        return reader

    def size(self, start: Offset, end: Offset) -> int:
        """Return how many bytes are between two offsets."""
        spans = self._reader().spans(
            Position.from_json(start), Position.from_json(end), LEAST_PARTITION
        )
        return sum(span.end - span.start for span in spans)

    def is_mixed(self, start: Offset, end: Offset) -> bool:
        """Say that there is one log."""
        return False

    def progress(self, offset: Offset) -> tuple[int, int | None]:
        """Return the number of records read up to an offset, and the total if it is known."""
        return offset["record"], None if self._target is None else self._target.record

    def status(self) -> SourceStatus | None:
        """Return the status of the source; the receiver may be in another process."""
        return self._folder().status()

    def stop(self) -> None:
        """Stop the receiver."""
        if self._receiver is not None:
            self._receiver.stop()
            self._receiver = None

    def _received(self) -> Receiver:
        if self._receiver is None:
            folder = self._folder()
            source = functools.partial(self._unique_source, folder)
            self._receiver = Receiver(folder, source, self._options.max_bytes)
            self._receiver.start()
        return self._receiver

    def _unique_source(self, folder: LogFolder) -> LiveSource:
        return UniqueSource(self._source(), folder, self._uniqueness)

    def _check(self, begin: Position, end: Position) -> None:
        self._folder().check(begin)
        if begin.record > end.record:
            raise ConnectorError(
                f"the log in {self._options.path} ends before record {begin.record}, up to "
                "which it has been read\n"
                "  hint: put back what was removed, or begin anew with another checkpoint or "
                "state directory"
            )

    def _folder(self) -> LogFolder:
        return LogFolder(self._options.path)

    def _reader(self) -> LogReader:
        return LogReader(self._folder())

    # Records ---------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[LogPart]:
        """Return the records between two offsets, cut so that every core has some."""
        spans = self._reader().spans(
            Position.from_json(start), Position.from_json(end), LEAST_PARTITION
        )
        size = sum(span.end - span.start for span in spans)
        least = max(LEAST_PARTITION, size // (self._options.max_partitions or os.cpu_count() or 1))
        parts: list[list[RecordSpan]] = []
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


def _uniqueness(options: LogOptions) -> Uniqueness | None:
    if options.message_id is None:
        return None
    return Uniqueness(MessageIdentity(options.message_id), float(options.duplicate_seconds))
