"""The Spark runtime: one Structured Streaming query per stream, whose job is done in the executors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from acquatop.catalog import Stream
from acquatop.errors import EnvironmentProblem
from acquatop.operators.reduce.contract import Part
from acquatop.operators.reduce.job import Job
from acquatop.runtime import Batch, Consumer, Resume
from acquatop.runtime.checkpoint import Checkpoint
from acquatop.runtime.java import explain_missing, find_java, java_home
from acquatop.runtime.sources import SOURCES

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER = "50 milliseconds"
"""How often a stream is asked for something new."""


SCHEMA = "unit int, payload binary"
"""What the executors send: for each partition a row for each reducer, with what it comes to as an Arrow stream."""


class SparkRuntime:
    """Carries streams on a Spark session: the caller's, or the one that runs already, else one of its own."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        running = spark or _running_session()
        self._owns = running is None
        self.spark = running or _own_session()

    def carry(self, stream: Stream, consumer: Consumer, *, until_end: bool, resume: Resume | None) -> SparkCarrier:
        """Start to carry a stream."""
        return SparkCarrier(self.spark, stream, consumer, until_end, resume)

    def close(self) -> None:
        """Stop the session if it is this runtime's own."""
        if self._owns:
            _end_session(self.spark)


class SparkCarrier:
    """One stream and the streaming query that reads it.

    Its checkpoint lasts as long as the carrier, unless it is to go on after a position: then the checkpoint is made to
    say what the position does, whatever became of it, and a batch that was taken in already is passed over.
    """

    def __init__(
        self, spark: SparkSession, stream: Stream, consumer: Consumer, until_end: bool, resume: Resume | None
    ) -> None:
        self._consumer = consumer
        self._stopping = False
        self._error: BaseException | None = None
        self._turn = threading.Lock()
        self._keeps = resume is not None
        self._last = -1
        self._checkpoint = Checkpoint(_temporary() if resume is None else resume.folder)
        try:
            if resume is not None:
                self._last = self._checkpoint.go_back_to(resume.position)
            self._query: StreamingQuery = self._start(spark, stream, until_end)
        except BaseException:
            self._forget_checkpoint()
            raise
        self._watcher = threading.Thread(target=self._watch, name=f"acquatop-{stream.iri}", daemon=True)
        self._watcher.start()
        try:
            _warm_up(spark, stream)
        except BaseException:
            self.stop()
            raise

    def _start(self, spark: SparkSession, stream: Stream, until_end: bool) -> StreamingQuery:
        source = SOURCES[stream.connector]
        spark.dataSource.register(source)
        rows = spark.readStream.format(source.name()).options(**stream.options).load()
        writer = rows.writeStream.foreachBatch(self._process)
        writer = writer.option("checkpointLocation", str(self._checkpoint.path))
        writer = writer.trigger(availableNow=True) if until_end else writer.trigger(processingTime=TRIGGER)
        return writer.start()

    def stop(self) -> None:
        """End the stream after the batch at hand."""
        self._stopping = True
        with self._turn, suppress(Exception):  # the JVM may be gone already, and then there is nothing to stop
            self._query.stop()
        self._watcher.join()

    def _process(self, rows: DataFrame, number: int) -> None:
        with self._turn:
            if self._stopping or number <= self._last:
                return
            try:
                self._take(rows, number)
            except BaseException as error:
                # Spark would wrap it beyond recognition on its way through the JVM.
                self._error = error
                raise

    def _take(self, rows: DataFrame, number: int) -> None:
        if self._last >= 0 and number != self._last + 1:
            raise EnvironmentProblem(f"Spark's checkpoint goes on with batch {number}, after {self._last} was the last")
        started = time.perf_counter()
        table = rows.mapInArrow(InExecutors(self._consumer.job()), SCHEMA).toArrow()
        partitions = _partitions(table)
        position = {"batch": number, **({"offsets": self._checkpoint.offsets(number)} if self._keeps else {})}
        self._consumer.take(Batch(position, partitions, time.perf_counter() - started))
        self._last = number

    def _watch(self) -> None:
        error: BaseException | None = None
        try:
            self._query.awaitTermination()
        except BaseException as failure:
            error = self._error or _translated(failure)
        finally:
            self._forget_checkpoint()
            self._consumer.end(None if self._stopping else error)

    def _forget_checkpoint(self) -> None:
        if not self._keeps:
            shutil.rmtree(self._checkpoint.path, ignore_errors=True)


class InExecutors:
    """A stream's job as Spark wants it: an iterator of row batches in, one of record batches out."""

    def __init__(self, job: Job) -> None:
        self._job = job

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Do the job on one partition."""
        import pyarrow as pa

        for unit, part in enumerate(self._job(batches)):
            columns = [pa.array([unit], pa.int32()), pa.array([part.to_bytes()], pa.binary())]
            yield pa.RecordBatch.from_arrays(columns, ["unit", "payload"])


def _partitions(table: pa.Table) -> list[list[Part]]:
    """Return the parts of each partition: they come one partition after the other, each from unit zero on."""
    partitions: list[list[Part]] = []
    for batch in table.to_batches():
        for unit, payload in zip(batch.column("unit").to_pylist(), batch.column("payload"), strict=True):
            if unit == 0:
                partitions.append([])
            partitions[-1].append(Part.from_bytes(payload.as_buffer()))
    return partitions


def _warm_up(spark: SparkSession, stream: Stream) -> None:
    """Let the executors load what they need, so that the first window does not wait for them to start."""
    nothing = spark.range(0, 1, 1, 1).selectExpr("CAST(NULL AS binary) AS value").where("value IS NOT NULL")
    nothing.mapInArrow(InExecutors(Job(stream.mapping, ())), SCHEMA).toArrow()


def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="acquatop-checkpoint-"))


def _translated(failure: BaseException) -> EnvironmentProblem:
    lines = [line.strip() for line in str(failure).splitlines() if line.strip()]
    said = next((line for line in lines if "Error:" in line), lines[0] if lines else type(failure).__name__)
    return EnvironmentProblem(f"the stream has failed on Spark: {said}")


def _running_session() -> SparkSession | None:
    from pyspark.sql import SparkSession

    return SparkSession.getActiveSession()


def _own_session() -> SparkSession:
    java = find_java()
    if java is None:
        raise EnvironmentProblem(explain_missing())
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    home = java_home(java)
    before = os.environ.get("JAVA_HOME")
    os.environ["JAVA_HOME"] = home.name
    try:
        with resources.as_file(resources.files("acquatop.runtime") / "log4j2.properties") as log4j:
            return _builder(SparkSession.builder, log4j.absolute().as_uri()).getOrCreate()
    except Exception as error:
        raise EnvironmentProblem(f"Spark did not start on Java {java.version} ({java.command}): {error}") from error
    finally:
        # Only the JVM's launch needs it; what runs in this process keeps its own surroundings.
        os.environ.pop("JAVA_HOME") if before is None else os.environ.update(JAVA_HOME=before)
        home.cleanup()


def _end_session(spark: SparkSession) -> None:
    """Stop a session and its JVM, and wait until that has gone: nothing of ours stays behind."""
    from pyspark import SparkContext

    gateway = spark.sparkContext._gateway
    with suppress(Exception):  # the JVM may be gone already
        spark.stop()
    if gateway is None:
        return
    with suppress(Exception):
        gateway.shutdown()
    process = gateway.proc
    process.stdin.close()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    # PySpark would go on using the JVM that it knows; a session after this one needs a new one.
    SparkContext._gateway = SparkContext._jvm = None


def _builder(builder: SparkSession.Builder, log4j: str) -> SparkSession.Builder:
    options = {
        "spark.app.name": "acquatop",
        "spark.master": "local[*]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j} -XX:+UseSerialGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.warehouse.dir": tempfile.gettempdir() + "/acquatop-warehouse",
    }
    for key, value in options.items():
        builder = builder.config(key, value)
    return builder
