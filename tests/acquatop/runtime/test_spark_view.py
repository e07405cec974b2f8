"""Spark's own views of an engine's work: names, rows and jobs."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from acquatop import Engine
from acquatop.catalog.catalog import Catalog
from acquatop.runtime import stream_carrier
from acquatop.runtime.spark_view import described, free_name
from connectors.paced_source import BATCHES
from tests.support.waiting import until

pytestmark = pytest.mark.spark

CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
small_batches = "{place}"
options = {{ path = "{folder}/events", maxBytesPerBatch = 1000 }}
[streams.":s".mapping]
subject = ":user/{{user}}"
time = "t"
properties = {{ ":n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 200ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 3"""
NAME = "acquatop <http://example.org/s>"
EVENTS = 400


class Listener(StreamingQueryListener):
    """A listener that keeps what it is told."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, int]] = []

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (the names are PySpark's)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self.rows.append((event.progress.name, event.progress.numInputRows))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        pass


@contextmanager
def listening(spark: SparkSession) -> Iterator[Listener]:
    listener = Listener()
    spark.streams.addListener(listener)
    try:
        yield listener
    finally:
        spark.streams.removeListener(listener)


def run(folder: Path, place: str, spark: SparkSession) -> None:
    events = ({"user": f"u{at % 50}", "t": 1_000 + at, "n": at * 31 % 101} for at in range(EVENTS))
    lines = [json.dumps(each) + "\n" for each in events]
    # A record that cannot be used has been read as well.
    (folder / "events").write_text("".join([*lines[1:], "{\n"]))
    text = CATALOG.format(folder=folder, place=place)
    catalog = Catalog.parse(text, file=folder / "catalog.toml", variables={})
    with Engine(catalog, spark=spark, until_end=True) as engine:
        assert list(engine.register(QUERY, name="most"))


def batch_of(description: str) -> str:
    return description.split(", ")[1].partition(":")[0]


def test_jobs_name_stream_batch_and_queries(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []

    def noted(session: SparkSession, text: str) -> AbstractContextManager[None]:
        said.append(text)
        return described(session, text)

    monkeypatch.setattr(stream_carrier, "described", noted)
    run(tmp_path, "executors", spark)
    # A batch whose Python was too slow is done again.
    plans = [len(list(each)) for _, each in itertools.groupby(dict.fromkeys(said), batch_of)]
    assert list(dict.fromkeys(said)) == [
        f"<http://example.org/s>, batch {number}{f', part {part}' if part > 1 else ''}: most"
        for number, parts in enumerate(plans)
        for part in range(1, parts + 1)
    ]
    assert len(plans) > 1
    assert max(plans) <= BATCHES


@pytest.mark.parametrize("place", ["driver", "executors"])
def test_spark_reports_the_rows_of_every_batch(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    with listening(spark) as listener:
        run(tmp_path, place, spark)
        # Its query may be started again, if Spark's workers are too slow to start.
        until(lambda: sum(rows for _, rows in listener.rows) >= EVENTS)
    assert {name for name, _ in listener.rows} == {NAME}
    assert len(listener.rows) > 1
    assert sum(rows for _, rows in listener.rows) == EVENTS


def test_tasks_know_what_they_are_for(spark: SparkSession) -> None:
    def description(_: int) -> str | None:
        context = TaskContext.get()
        return context and context.getLocalProperty("spark.job.description")

    numbers = spark.sparkContext.parallelize([1], 1)
    before = numbers.map(description).collect()
    with described(spark, "<s>, batch 3"):
        assert numbers.map(description).collect() == ["acquatop <s>, batch 3"]
    assert numbers.map(description).collect() == before


def test_a_stream_that_is_read_twice_has_two_names(spark: SparkSession) -> None:
    assert free_name(spark, "<s>") == "acquatop <s>"
    rows = spark.readStream.format("rate").load().writeStream.format("noop")
    first = rows.queryName("acquatop <s>").start()
    try:
        assert free_name(spark, "<s>") == "acquatop <s> 2"
    finally:
        first.stop()
