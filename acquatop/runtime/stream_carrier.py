"""Carrier of a stream on Spark: one Structured Streaming query, with its job in the executors."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JError

from acquatop.catalog.catalog import Stream
from acquatop.errors import EnvironmentProblem
from acquatop.ingest.reduce.contract import Part
from acquatop.ingest.reduce.job import Job
from acquatop.plugins import CONNECTORS
from acquatop.runtime import Batch, Consumer, JobAhead, Position, Resume
from acquatop.runtime.checkpoint import Checkpoint, offset_in, with_offset
from acquatop.runtime.driver_source import register_in_driver
from acquatop.runtime.executor_work import InExecutors, Unpacking, Work
from acquatop.runtime.failures import said_by_spark
from acquatop.runtime.lost_results import ended_if_lost
from acquatop.runtime.pace import Allowance, Steps
from acquatop.runtime.placement import is_small, sent_by
from acquatop.runtime.publications import Publications, SentValues
from acquatop.runtime.session import Session
from acquatop.runtime.sources import (
    RepeatedMessages,
    for_other_processes,
    how_far,
    log_nearly_full,
    reader_of,
    release_data,
    source_options,
    status_of,
)
from acquatop.runtime.spark_view import (
    described,
    free_name,
    note_rows,
    purpose,
    query_named,
    rows_in,
)
from acquatop.runtime.taker import Taker
from connectors.divisible import Divisible
from connectors.ending_source import ending
from connectors.paced_source import PlanNotes, paced
from connectors.source_status import SourceStatus

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER = "10 milliseconds"
"""The interval at which a stream is polled: half of it is a part of every answer's latency."""

SLOW = "Python worker failed to connect back"
"""Spark's message if a Python worker did not start within ten seconds, as on a busy machine."""

STARTS = 3
"""The number of attempts to start a stream until it brings a batch."""


@dataclass(frozen=True)
class _Work:
    """Job on a batch, and the values in it as they were when it was made, if that was before."""

    job: Job
    values: SentValues | None = None


@dataclass(frozen=True)
class _WorkAhead:
    """Job behind a batch that is being taken in, and the values in it as they were before that."""

    job: JobAhead
    values: SentValues


class _Stopped(Exception):  # noqa: N818 (it is no error)
    """End of a batch that is left to those who resume: the stream is to be stopped."""


class SparkCarrier:
    """One stream and the streaming query that reads it.

    While the consumer takes a batch that executors have read, in a thread of its own, Spark plans
    the next one, and executors read it. No more is read ahead. Small batches, which the driver
    reads, are taken one by one.

    Its checkpoint lasts as long as the carrier. Resuming makes a new one from the position.
    """

    _repeats = False
    """True if the batch that was under way has to come again unchanged."""

    _steps: Steps | None = None
    """Sizes of the batches; None if the source's are not cut."""

    def __init__(
        self,
        session: Session,
        stream: Stream,
        consumer: Consumer,
        until_end: bool,
        resume: Resume | None,
    ) -> None:
        self._session = session
        self._spark = session.spark
        self._stream = stream
        self._consumer = consumer
        self._until_end = until_end
        self._stopping = False
        self._error: BaseException | None = None
        self._batch_lock = threading.Lock()
        self._is_durable = resume is not None
        self._moves = resume is not None and resume.moves
        self._publications = Publications(self._spark.sparkContext.broadcast)
        position = None if resume is None else resume.position
        self._open(position)
        self._checkpoint = Checkpoint(
            None if resume is None else resume.folder, position, repeats=self._repeats
        )
        self._notes = PlanNotes(self._checkpoint.path)
        self._last = self._checkpoint.last
        self._part = 0
        """Number of batches that have come of the plan at hand."""
        self._tell_pace()
        self._query: StreamingQuery | None = None
        self._taker = Taker(f"acquatop-taker-{stream.iri}", self._fail)
        self._ahead: _WorkAhead | None = None
        self._is_in_executors = False
        """True if executors have read the last batch."""
        self._watcher = threading.Thread(
            target=self._watch, name=f"acquatop-{stream.iri}", daemon=True
        )

    def start(self) -> None:
        """Start the streaming query."""
        try:
            self._query = self._start(self._until_end)
        except BaseException:
            self._leave_checkpoint()
            raise
        self._watcher.start()

    def _open(self, position: Position | None) -> None:
        """Prepare to read after a position."""
        # The cores that count are the executors', not those of the machine that this runs on.
        cores = {"maxPartitions": str(self._spark.sparkContext.defaultParallelism)}
        self._reader = reader_of(self._stream.connector, {**cores, **self._stream.options})
        self._repeated = RepeatedMessages(self._reader)
        self._offset = (
            self._reader.initialOffset() if position is None else offset_in(position["offsets"])
        )
        if isinstance(self._reader, Divisible):
            size = None if position is None else position.get("pace")
            self._steps = Steps(self._reader, allowance(self._spark), size)

    def _rows(self, until_end: bool) -> DataFrame:
        source = CONNECTORS[self._stream.connector].data_source()
        source = ending(source) if until_end else source
        source = paced(source, self._checkpoint.path)
        own = source_options(self._stream.connector, self._stream.options)
        options = for_other_processes(self._stream.connector, own)
        form = register_in_driver(self._spark, source)
        return self._spark.readStream.format(form).options(**options).load()

    def _start(self, until_end: bool) -> StreamingQuery | None:
        writer = self._rows(until_end).writeStream.foreachBatch(self._process)
        self._name = free_name(self._spark, f"<{self._stream.iri}>")
        writer = writer.queryName(self._name)
        # The driver's disk, whatever file system a cluster would look for a mere path in. Not
        # as_uri(): to Spark a %20 would be part of the name.
        writer = writer.option("checkpointLocation", f"file://{self._checkpoint.path.absolute()}")
        writer = (
            writer.trigger(availableNow=True)
            if until_end
            else writer.trigger(processingTime=TRIGGER)
        )
        return writer.start()

    def stop(self) -> None:
        """Stop the stream after the batch at hand. What was read ahead of it is left."""
        self._stopping = True
        self._consumer.release()
        self._await_batch()
        # Without the lock: Spark waits for a batch that has just come, and that one for the lock.
        if self._query is not None:
            with suppress(Exception):  # the JVM may be gone already, with nothing left to stop
                self._query.stop()
        if self._watcher.ident is not None:
            self._watcher.join()

    def _await_batch(self) -> None:
        """Return once the batch at hand is over; with ``_stopping`` none begins any more."""
        with self._batch_lock:
            self._taker.wait()

    def _leave_checkpoint(self) -> None:
        """Remove the checkpoint: the position is sufficient to resume."""
        self._checkpoint.remove()

    def forget(self, position: Position) -> None:
        """Let the source discard data up to a position."""
        release_data(self._reader, offset_in(position["offsets"]))

    tells_status = True

    def status(self) -> SourceStatus | None:
        """Return the status of the source."""
        return status_of(self._reader)

    def _process(self, rows: DataFrame, number: int) -> None:
        # Nothing else waits for this thread meanwhile: every stream's batches have a thread of
        # their own.
        is_done = False
        while not is_done:
            self._wait()
            with self._batch_lock:
                if self._stopping or number <= self._last:
                    return
                with self._noting_errors():
                    try:
                        is_done = self._take(rows, number)
                    except _Stopped:
                        return

    def _wait(self) -> None:
        with self._noting_errors():
            if self._ahead is None:
                self._taker.finish()
            self._consumer.wait()

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        """Note an error: Spark would wrap it beyond recognition on its way through the JVM.

        Any call of the JVM fails once that has ended.
        """
        try:
            with said_by_spark(self._session, self._stream, of=Py4JError):
                yield
        except BaseException as error:
            self._error = self._error or error
            raise

    def _fail(self, error: BaseException) -> None:
        """End the stream, as a batch could not be taken in. Spark does not know that batch."""
        self._error = self._error or error
        query = self._query or query_named(self._spark, self._name)
        if query is not None:
            with suppress(Exception):  # the JVM may be gone already
                query.stop()

    def _take(self, rows: DataFrame, number: int) -> bool:
        """Take in Spark's plan of a batch, or as much of it as can be sent; say if that was all.

        All that comes of one plan has its number. Spark's note on it, as it is kept, ends where it
        was left.
        """
        if self._last >= 0 and number != self._last + 1:
            raise EnvironmentProblem(
                f"Spark's checkpoint goes on with batch {number}, after {self._last} was the last"
            )
        planned = self._planned(number)
        if self._part and self._is_left(offset_in(planned)):
            self._last, self._part = number, 0
            return True
        note, parts, seconds = self._reduced(rows, planned)
        position = {
            "batch": number,
            **({"offsets": note, **self._kept()} if self._is_durable else {}),
        }
        batch = Batch(position, parts, seconds, *self._how_far(note))
        self._note_rows(rows_in(parts))
        self._give(batch, note)
        self._has_read(note)
        is_done = note == planned
        self._part = 0 if is_done else self._part + 1
        if is_done:
            self._last = number
        return is_done

    def _is_left(self, end: Any) -> bool:
        """Return True if the rest of a plan is left to the next one, as it is less than a batch.

        So a batch ends where it would if Spark had planned from its start.
        """
        return self._notes.has_more(end) and self._stop(end) == end

    def _give(self, batch: Batch, note: str) -> None:
        """Let the consumer take a batch, in the taker's thread if that lets executors go on."""
        if not self._is_in_executors:
            self._take_in(batch, note)
            return
        ahead = self._consumer.job_ahead(batch)
        # Values are noted now, while nobody changes them.
        if ahead is not None:
            self._ahead = _WorkAhead(ahead, self._publications.values_in(ahead.job))
        self._taker.hand_over(lambda: self._take_in(batch, note))

    def _take_in(self, batch: Batch, note: str) -> None:
        self._consumer.take(batch)
        self._release(note)

    def _work(self, *, is_small: bool) -> _Work:
        """Return the work on the next batch.

        If the batch before is still being taken in, and nothing has to wait for it, the work is the
        one that was made before. Else it is made now, once that batch is taken.
        """
        ahead, self._ahead = self._ahead, None
        job = None if ahead is None or is_small else ahead.job.begin()
        if ahead is not None and job is not None:
            return _Work(job, ahead.values)
        self._finish_last()
        return _Work(self._consumer.job())

    def _finish_last(self) -> None:
        """Return once the batch before is taken in; no other is, if the stream is to be stopped."""
        self._taker.finish()
        if self._stopping:
            raise _Stopped

    def _planned(self, number: int) -> str:
        """Return Spark's note on a batch."""
        return self._checkpoint.offsets(number)

    def _kept(self) -> dict[str, Any]:
        """Return what must be known, besides where that is, to go on as if nothing had happened."""
        return {} if self._steps is None else {"pace": self._steps.pace.size}

    def _reduced(self, rows: DataFrame, planned: str) -> tuple[str, list[list[Part]], float]:
        """Run the job on a batch in the executors, a task per partition.

        Return how far it read, the parts, and the seconds that it took. The batch before has been
        taken in by then.
        """
        # The rows are not asked for: they would go through the JVM twice. What the batch reads is
        # known from its note.
        end = offset_in(planned)
        while True:
            work = self._work(is_small=self._is_small(self._stop(end)))
            started = time.perf_counter()
            stop, parts, sent = self._read(end, work)
            seconds = time.perf_counter() - started
            if work.values is None:
                break
            self._finish_last()
            if work.values.are_current:
                break
        if self._steps is not None:
            self._steps.sent(self._offset, stop, sent)
            self._tell_pace()
        note = planned if stop == offset_in(planned) else with_offset(planned, stop)
        return note, parts, seconds

    def _tell_pace(self) -> None:
        """Tell the source, which Spark asks in another process, how large the next batch may be."""
        if self._steps is not None:
            self._notes.note_pace(self._steps.pace.size)

    def _read(self, end: Any, work: _Work) -> tuple[Any, list[list[Part]], int]:
        """Do the work on what is to be read up to an offset, or as much of it as can be sent.

        Return where it stopped, the parts, and their size.
        """
        most = None if self._steps is None else self._steps.pace.allowed.most
        stop = self._stop(end)
        while True:
            found = self._found(stop, work, most)
            sent = sum(each if isinstance(each, int) else sum(map(len, each)) for each in found)
            parts = [each for each in found if not isinstance(each, int)]
            if len(parts) == len(found):
                break
            assert self._steps is not None, "otherwise there is no limit"
            self._steps.exceeded(self._offset, stop, end, sent)
            before, stop = stop, self._stop(end)
            # What cannot be cut is sent as it is.
            most = None if stop == before else most
        partitions = [[Part.from_bytes(data) for data in of_partition] for of_partition in parts]
        # Python has them unpacked.
        unpacked = sum(part.nbytes for of_partition in partitions for part in of_partition)
        return stop, partitions, max(sent, unpacked)

    def _stop(self, end: Any) -> Any:
        return end if self._steps is None else self._steps.stop(self._offset, end)

    def _how_far(self, note: str) -> tuple[int | None, int | None, bool, int]:
        """Return the size read so far, the size of all, whether the source needs room, and how many
        messages it has dropped.
        """
        latest = offset_in(note)
        done = how_far(self._reader, latest, self._until_end)
        is_full = log_nearly_full(self._reader, latest)
        return *done, is_full, self._repeated.since_last()

    def _has_read(self, note: str) -> None:
        """Note that a batch has been read."""
        self._offset = offset_in(note)

    def _release(self, note: str) -> None:
        """Let the source discard what has been taken in, unless it may be read again."""
        if not self._is_durable:
            release_data(self._reader, offset_in(note))

    def _is_small(self, stop: Any) -> bool:
        """Return True if the driver reads what is to be read up to an offset."""
        in_driver = self._stream.small_batches == "driver"
        return in_driver and is_small(self._reader, self._offset, stop)

    def _found(self, stop: Any, work: _Work, most: int | None) -> Sequence[list[bytes] | int]:
        """Do the work on what is to be read up to an offset, where that is best done."""
        partitions = self._reader.partitions(self._offset, stop)
        self._is_in_executors = work.values is not None or not self._is_small(stop)
        if not self._is_in_executors:
            return list(sent_by(self._reader, partitions, work.job, most))
        return self._in_executors(partitions, work, most)

    def _in_executors(
        self, partitions: Sequence[InputPartition], work: _Work, most: int | None
    ) -> Sequence[list[bytes] | int]:
        if not partitions:
            return []
        context = self._spark.sparkContext
        tasks = context.parallelize(partitions, len(partitions))
        share = None if most is None else most // len(partitions)
        in_executors = InExecutors(self._stream, work.job, share)
        with self._sent(in_executors, work.job, work.values) as sent:
            return tasks.mapPartitions(sent).collect()

    def _note_rows(self, rows: int) -> None:
        """Tell Spark of the records that a batch has read."""
        note_rows(self._query or query_named(self._spark, self._name), rows)

    @contextmanager
    def _sent(self, work: Work, job: Job, values: SentValues | None = None) -> Iterator[Work]:
        """Yield work in the form in which it is sent; the job on it ends within the context."""
        with self._at_work(job), self._publications.sent(work, values) as sent:
            yield Unpacking(sent)

    @contextmanager
    def _at_work(self, job: Job) -> Iterator[None]:
        """See to it that a job is named, that it ends, and that it is said why it has failed."""
        what = purpose(self._stream.iri, self._last + 1, job.queries, part=self._part + 1)
        with (
            said_by_spark(self._session, self._stream),
            ended_if_lost(self._spark),
            described(self._spark, what),
        ):
            yield

    def _watch(self) -> None:
        error: BaseException | None = None
        try:
            with said_by_spark(self._session, self._stream):
                self._await_end()
        except BaseException as failure:
            error = self._error or failure
        finally:
            self._leave_checkpoint()
            # The last batch must be over first; the JVM may have died while it is being taken in.
            with self._batch_lock:
                self._taker.close()
                with suppress(Exception):  # the JVM may be gone already, with all broadcasts
                    self._publications.close()
                self._consumer.end(None if self._stopping else self._error or error)

    def _await_end(self) -> None:
        """Wait until the stream ends; restart it if Spark was too slow to start a Python worker."""
        starts, last = 1, self._last
        while True:
            try:
                assert self._query is not None, "it has been started"
                self._query.awaitTermination()
                return
            except Exception as failure:
                starts, last = (1 if self._last > last else starts) + 1, self._last
                if SLOW not in str(failure) or starts > STARTS or self._error is not None:
                    raise
            with self._batch_lock:
                if self._stopping:
                    return
                self._query = None  # the one that has ended
                self._query = self._start(self._until_end)


def allowance(spark: SparkSession) -> Allowance:
    """Return how much may be sent to the driver at a time."""
    java = spark.sparkContext._jvm
    assert java is not None
    results = spark.sparkContext.getConf().get("spark.driver.maxResultSize", "1g")
    return Allowance.of(
        int(java.java.lang.Runtime.getRuntime().maxMemory()),
        int(java.org.apache.spark.network.util.JavaUtils.byteStringAsBytes(results)),
    )
