"""Batches that the driver reads itself, without a job of Spark, because they are small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadMaxRows

from acquatop import Engine
from acquatop.catalog.catalog import Catalog
from acquatop.runtime import placement, stream_carrier
from acquatop.runtime.placement import is_small
from acquatop.runtime.sources import reader_of
from acquatop.runtime.spark_view import described

CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
{more}
options = {{ path = "{folder}/events", maxBytesPerBatch = 4000 }}
[streams.":s".mapping]
subject = ":user/{{user}}"
time = "t"
properties = {{ ":n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 200ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 3"""
EVENTS = 1_000
EXECUTORS = 'small_batches = "executors"'


@contextmanager
def jobs_counted(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Yield a list that gets the description of each job."""
    jobs: list[str] = []

    def counted(session: SparkSession, text: str) -> AbstractContextManager[None]:
        jobs.append(text)
        return described(session, text)

    with monkeypatch.context() as patch:
        patch.setattr(stream_carrier, "described", counted)
        yield jobs


def answered(folder: Path, more: str, spark: SparkSession | None) -> list[str]:
    text = CATALOG.format(folder=folder, more=more)
    catalog = Catalog.parse(text, file=folder / "catalog.toml", variables={})
    runtime = "local" if spark is None else "spark"
    with Engine(catalog, runtime=runtime, spark=spark, until_end=True) as engine:
        return [json.dumps(answer.canonical()) for answer in engine.register(QUERY)]


@pytest.mark.spark
def test_small_batches_need_no_job_and_give_the_same_bytes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = ({"user": f"u{at % 50}", "t": 1_000 + at, "n": at * 31 % 101} for at in range(EVENTS))
    (tmp_path / "events").write_text("".join(json.dumps(each) + "\n" for each in events))
    right = answered(tmp_path, "", None)
    assert len(right) == 6
    with jobs_counted(monkeypatch) as jobs:
        assert answered(tmp_path, "", spark) == right
        assert jobs == []
        assert answered(tmp_path, EXECUTORS, spark) == right
        assert len(jobs) > 5
        assert jobs[1] == "<http://example.org/s>, batch 0, part 2: query"
        before = len(jobs)
        # Batches have nearly 4000 bytes, and the last one has less.
        monkeypatch.setattr(placement, "MOST_BYTES", 3_900)
        assert answered(tmp_path, "", spark) == right
        assert 0 < len(jobs) - before < before


def test_size_is_in_the_unit_of_the_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(placement, "MOST_BYTES", 100)
    monkeypatch.setattr(placement, "MOST_ROWS", 10)
    lines = reader_of("lines", {"path": str(tmp_path / "lines")})
    assert is_small(lines, {}, {"lines": 100})
    assert is_small(lines, {"lines": 300}, {"lines": 400})
    assert not is_small(lines, {}, {"lines": 101})
    pq.write_table(pa.table({"n": range(11)}), tmp_path / "rows.parquet")
    options = {"path": str(tmp_path / "rows.parquet"), "columns": '{"n": "bigint"}'}
    rows = reader_of("parquet", options)
    begin = rows.initialOffset()
    ends = [rows.latestOffset(begin, ReadMaxRows(count)) for count in (10, 11)]
    assert [is_small(rows, begin, end) for end in ends] == [True, False]
    assert not is_small(object(), {}, {"lines": 1})
