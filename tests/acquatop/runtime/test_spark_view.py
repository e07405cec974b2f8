"""Spark's own views of an engine's work: names, rows and jobs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from acquatop import Engine
from acquatop.catalog.catalog import Catalog
from acquatop.runtime.spark_view import free_name
from tests.support.waiting import until

pytestmark = pytest.mark.spark

CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
small_batches = "{place}"
options = {{ path = "{folder}/events", maxBytesPerBatch = 4000 }}
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
        self.has_ended = False

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 (the names are PySpark's)
        pass

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        self.rows.append((event.progress.name, event.progress.numInputRows))

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        self.has_ended = True


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
        assert list(engine.register(QUERY))


def descriptions(spark: SparkSession) -> list[str]:
    jobs = spark.sparkContext._jsc.sc().statusStore().jobsList(None)
    return [
        job.description().get()
        for job in (jobs.apply(at) for at in range(jobs.size()))
        if job.description().isDefined()
    ]


@pytest.mark.parametrize("place", ["driver", "executors"])
def test_spark_reports_the_rows_of_every_batch(
    place: str, spark: SparkSession, tmp_path: Path
) -> None:
    jobs = sum(text.startswith(NAME) for text in descriptions(spark))
    with listening(spark) as listener:
        run(tmp_path, place, spark)
        until(lambda: listener.has_ended)
    assert {name for name, _ in listener.rows} == {NAME}
    assert len(listener.rows) > 3
    assert sum(rows for _, rows in listener.rows) == EVENTS
    named = [text for text in descriptions(spark) if text.startswith(NAME)][: -jobs or None]
    assert bool(named) == (place == "executors")
    assert all(f"{NAME}, batch " in text for text in named)


def test_a_stream_that_is_read_twice_has_two_names(spark: SparkSession) -> None:
    assert free_name(spark, "<s>") == "acquatop <s>"
    rows = spark.readStream.format("rate").load().writeStream.format("noop")
    first = rows.queryName("acquatop <s>").start()
    try:
        assert free_name(spark, "<s>") == "acquatop <s> 2"
    finally:
        first.stop()
