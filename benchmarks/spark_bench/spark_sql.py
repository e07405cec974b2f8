"""Plain Spark as its users write it: Structured Streaming and SQL over the same files.

Run as a process of its own by ``benchmarks/spark.py``. The ways of doing a job:

- ``streaming`` sums: a window aggregation in the state store, its results joined with the weights
  and ranked by ``row_number`` whenever windows close. ``panes`` is an expert's version: first sums
  of three minutes, then of windows, which keeps a third of the state.
- ``streaming`` events: windows of each reading by ``explode``, the join and ``row_number`` of every
  batch in ``foreachBatch``, whose top rows are merged by hand; Spark has no ranking over a stream.
  ``max_by`` is an expert's version: a window aggregation whose state is a window's best.
- ``batch``: all files in one job, once all exist.
"""

from __future__ import annotations

import argparse
import heapq
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (so it is written everywhere)
from pyspark.sql.window import Window

from acquatop.runtime.java import find_java, java_home
from benchmarks.spark_bench.child import hand_back, told
from benchmarks.spark_bench.cpu import spent
from benchmarks.spark_bench.data import TOP, World, prepare

if TYPE_CHECKING:
    from pyspark.sql.column import Column

    from benchmarks.spark_bench.floor import Answers

_WIDTH, _SLIDE = "9 minutes", "3 minutes"
_ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
_FILES = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)
_LOG = Path(__file__).parents[2] / "acquatop" / "runtime" / "log4j2.properties"


def session(state: str, cores: int = 2) -> SparkSession:
    """Start Spark, tuned for this job: one partition per core, no user interface, enough memory."""
    java = find_java()
    if java is None:
        sys.exit("there is no suitable Java")
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    options = {
        "spark.master": f"local[{cores}]",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "6g",
        "spark.driver.extraJavaOptions": (
            f"-Dlog4j2.configurationFile={_LOG.as_uri()} -XX:+UseParallelGC"
        ),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(cores),
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.streaming.checkpointFileManagerClass": _FILES,
        **(
            {"spark.sql.streaming.stateStore.providerClass": _ROCKSDB} if state == "rocksdb" else {}
        ),
        # Without this every batch writes all changed files of RocksDB.
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    }
    builder = SparkSession.builder
    for key, value in options.items():
        builder = builder.config(key, value)
    with java_home(java) as home:
        os.environ["JAVA_HOME"] = home
        return builder.getOrCreate()


class Job:
    """One job on one session; ``key`` is the grouping and join column, ``files`` the batch size."""

    def __init__(self, spark: SparkSession, folder: Path, key: str, files: int) -> None:
        self._spark = spark
        self._readings = str(folder / "readings")
        self._key = key
        self._files = files
        self._checkpoint = tempfile.TemporaryDirectory(prefix="bench-spark-checkpoint-")
        weights = (
            spark.read.parquet(str(folder / "weights.parquet"))
            .select(key, "key_id", "weight")
            .cache()
        )
        weights.count()
        self._weights = F.broadcast(weights)
        self.batches = 0

    # Sums -----------------------------------------------------------------------------------------

    def sums(self, way: str) -> Answers:
        """Return the keys with the greatest sum times weight, of each window."""
        if way == "batch":
            return _answers(self._ranked_sums(self._summed(self._all())), "key_id")
        answers: Answers = {}
        summed = (
            self._summed_by_panes(self._stream())
            if way == "panes"
            else self._summed(self._stream())
        )

        def each(batch: DataFrame, _: int) -> None:
            answers.update(_answers(self._ranked_sums(batch), "key_id"))
            self._done(f"{len(answers)} windows")

        self._run(summed, each)
        return answers

    def _summed(self, readings: DataFrame) -> DataFrame:
        return readings.groupBy(F.window("time", _WIDTH, _SLIDE), self._key).agg(
            F.sum("value").alias("total")
        )

    def _summed_by_panes(self, readings: DataFrame) -> DataFrame:
        panes = readings.groupBy(F.window("time", _SLIDE).alias("pane"), self._key).agg(
            F.sum("value").alias("part")
        )
        windows = F.window("pane", _WIDTH, _SLIDE)
        return panes.groupBy(windows.alias("window"), self._key).agg(F.sum("part").alias("total"))

    def _ranked_sums(self, summed: DataFrame) -> DataFrame:
        joined = summed.join(self._weights, self._key)
        return _ranked(
            joined.select("window", "key_id", (F.col("total") * F.col("weight")).alias("score"))
        )

    # Events ---------------------------------------------------------------------------------------

    def events(self, way: str) -> Answers:
        """Return the readings with the greatest value times weight, of each window."""
        if way == "batch":
            return _answers(self._ranked_events(self._all()), "event")
        return self._greatest() if way == "max_by" else self._merged()

    def _ranked_events(self, readings: DataFrame) -> DataFrame:
        exploded = readings.select(
            F.window("time", _WIDTH, _SLIDE).alias("window"), self._key, "event", "value"
        )
        joined = exploded.join(self._weights, self._key)
        return _ranked(
            joined.select("window", "event", (F.col("value") * F.col("weight")).alias("score"))
        )

    def _merged(self) -> Answers:
        """Rank each batch by itself, and keep the best of each window in this process."""
        held: dict[int, list[tuple[int, float]]] = {}

        def each(batch: DataFrame, _: int) -> None:
            for close, rows in _answers(self._ranked_events(batch), "event").items():
                held[close] = heapq.nsmallest(
                    TOP, held.get(close, []) + rows, key=lambda row: -row[1]
                )
            self._done(f"{len(held)} windows")

        self._run(self._stream(), each)
        return held

    def _greatest(self) -> Answers:
        answers: Answers = {}
        score = F.col("value") * F.col("weight")
        joined = (
            self._stream()
            .join(self._weights, self._key)
            .select("time", "event", score.alias("score"))
        )
        best = joined.groupBy(F.window("time", _WIDTH, _SLIDE)).agg(
            F.max_by(F.struct("event", "score"), "score", TOP).alias("best")
        )

        def each(batch: DataFrame, _: int) -> None:
            for row in batch.select(_close("window"), "best").collect():
                answers[row["close"]] = [(one["event"], one["score"]) for one in row["best"]]
            self._done(f"{len(answers)} windows")

        self._run(best, each)
        return answers

    # Both -----------------------------------------------------------------------------------------

    def _all(self) -> DataFrame:
        return self._spark.read.parquet(self._readings)

    def _stream(self) -> DataFrame:
        schema = self._all().schema
        files = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", self._files)
        return files.parquet(self._readings).withWatermark("time", "0 seconds")

    def _run(self, frame: DataFrame, each: Callable[[DataFrame, int], None]) -> None:
        writer = frame.writeStream.outputMode("append").foreachBatch(each)
        query = (
            writer.option("checkpointLocation", self._checkpoint.name)
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()

    def _done(self, what: str) -> None:
        self.batches += 1
        told(f"{self.batches} batches, {what}")


def _ranked(scored: DataFrame) -> DataFrame:
    rank = F.row_number().over(Window.partitionBy("window").orderBy(F.desc("score")))
    return scored.withColumn("rank", rank).where(F.col("rank") <= TOP)


def _close(window: str) -> Column:
    return F.unix_millis(F.col(f"{window}.end")).alias("close")


def _answers(ranked: DataFrame, who: str) -> Answers:
    found: Answers = {}
    for row in sorted(ranked.select(_close("window"), "rank", who, "score").collect()):
        found.setdefault(row["close"], []).append((row[who], row["score"]))
    return found


def main() -> None:
    """Do one job in one way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--job", choices=("sums", "events"), default="sums")
    parser.add_argument(
        "--way", choices=("streaming", "panes", "max_by", "batch"), default="streaming"
    )
    parser.add_argument("--state", choices=("hdfs", "rocksdb"), default="hdfs")
    parser.add_argument("--key", choices=("key_id", "key"), default="key_id")
    parser.add_argument("--files", type=int, default=2)
    options = parser.parse_args()
    told("Spark starts")
    spark = session(options.state)
    small = World(20_000, 200, 5_000)
    prepare(small)
    warm = Job(spark, small.folder, options.key, options.files)
    warm.sums(options.way) if options.job == "sums" else warm.events(options.way)
    job = Job(spark, options.folder, options.key, options.files)
    told("reading")
    cpu, started = spent(), time.perf_counter()
    answers = job.sums(options.way) if options.job == "sums" else job.events(options.way)
    seconds = time.perf_counter() - started
    result = {"seconds": seconds, "cpu": spent() - cpu, "batches": job.batches}
    hand_back({**result, "answers": list(answers.items())})
    spark.stop()


if __name__ == "__main__":
    main()
