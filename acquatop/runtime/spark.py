"""The Spark runtime: one Structured Streaming query per stream, records decoded in the executors."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from importlib import resources
from typing import TYPE_CHECKING

from acquatop.catalog import Stream
from acquatop.errors import EnvironmentProblem
from acquatop.runtime import OnBatch, OnEnd
from acquatop.runtime.java import explain_missing, find_java, java_home
from acquatop.runtime.sources import SOURCES
from connectors.mapping import JsonMapping

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

TRIGGER = "50 milliseconds"
"""How often a stream is asked for something new."""


class SparkRuntime:
    """Carries streams on a Spark session: the caller's, or the one that runs already, else one of its own."""

    def __init__(self, spark: SparkSession | None = None) -> None:
        running = spark or _running_session()
        self._owns = running is None
        self.spark = running or _own_session()

    def carry(self, stream: Stream, on_batch: OnBatch, on_end: OnEnd, *, until_end: bool) -> SparkCarrier:
        """Start to carry a stream."""
        return SparkCarrier(self.spark, stream, on_batch, on_end, until_end)

    def close(self) -> None:
        """Stop the session if it is this runtime's own."""
        if self._owns:
            _end_session(self.spark)


class SparkCarrier:
    """One stream and the streaming query that reads it.

    Its checkpoint lasts as long as the carrier: a stopped query starts anew, from the stream's
    beginning.
    """

    def __init__(self, spark: SparkSession, stream: Stream, on_batch: OnBatch, on_end: OnEnd, until_end: bool) -> None:
        self._mapping = stream.mapping
        self._on_batch = on_batch
        self._on_end = on_end
        self._stopping = False
        self._error: BaseException | None = None
        self._checkpoint = tempfile.mkdtemp(prefix="acquatop-checkpoint-")
        try:
            self._query: StreamingQuery = self._start(spark, stream, until_end)
        except BaseException:
            shutil.rmtree(self._checkpoint, ignore_errors=True)
            raise
        self._watcher = threading.Thread(target=self._watch, name=f"acquatop-{stream.iri}", daemon=True)
        self._watcher.start()
        try:
            _warm_up(spark, stream.mapping)
        except BaseException:
            self.stop()
            raise

    def _start(self, spark: SparkSession, stream: Stream, until_end: bool) -> StreamingQuery:
        spark.dataSource.register(SOURCES[stream.connector])
        lines = spark.readStream.format(stream.connector).options(**stream.options).load()
        writer = lines.writeStream.foreachBatch(self._process).option("checkpointLocation", self._checkpoint)
        writer = writer.trigger(availableNow=True) if until_end else writer.trigger(processingTime=TRIGGER)
        return writer.start()

    def stop(self) -> None:
        """End the stream after the batch at hand."""
        self._stopping = True
        with suppress(Exception):  # the JVM may be gone already, and then there is nothing to stop
            self._query.stop()
        self._watcher.join()

    def _process(self, lines: DataFrame, batch: int) -> None:
        if self._stopping:
            return
        try:
            table = lines.mapInArrow(decoder(self._mapping), _ddl(self._mapping)).toArrow()
            self._on_batch(table.to_batches())
        except BaseException as error:
            # Spark would wrap it beyond recognition on its way through the JVM.
            self._error = error
            raise

    def _watch(self) -> None:
        error: BaseException | None = None
        try:
            self._query.awaitTermination()
        except BaseException as failure:
            error = self._error or _translated(failure)
        finally:
            shutil.rmtree(self._checkpoint, ignore_errors=True)
            self._on_end(None if self._stopping else error)


class decoder:  # noqa: N801 (it stands for a function, and must be one that can be shipped to executors)
    """The decode operator as Spark wants it: an iterator of line batches in, one of record batches out."""

    def __init__(self, mapping: JsonMapping) -> None:
        self._mapping = mapping

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Decode batch by batch."""
        for batch in batches:
            yield self._mapping.decode(batch.column("value"))


def _warm_up(spark: SparkSession, mapping: JsonMapping) -> None:
    """Run the decoder once on nothing, so that the first window does not wait for workers to start."""
    nothing = spark.range(0, 1, 1, 1).selectExpr("CAST(NULL AS binary) AS value").where("value IS NOT NULL")
    nothing.mapInArrow(decoder(mapping), _ddl(mapping)).toArrow()


def _ddl(mapping: JsonMapping) -> str:
    names = {"int64": "bigint", "double": "double", "string": "string"}
    return ", ".join(f"{field.name} {names[str(field.type)]}" for field in mapping.schema)


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
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
        "spark.sql.warehouse.dir": tempfile.gettempdir() + "/acquatop-warehouse",
    }
    for key, value in options.items():
        builder = builder.config(key, value)
    return builder
