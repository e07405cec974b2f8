"""Answers as a streaming DataFrame: each once, in columns of their own types."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from acquatop.answer.sinks import open_sink
from acquatop.answer.sinks.answers_source import AnswersDataSource
from acquatop.errors import UserError
from tests.support import programs
from tests.support.answers_out import QUERY, engine
from tests.support.sink_samples import answer

FRAME = """[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "spark"
[streams.":stream".mapping]
format = "columns"
subject = ":user/{user}"
time = "time_ms"
properties = { ":mentions" = { field = "mentions", datatype = "xsd:integer" } }
"""
ROOT = Path(__file__).parents[4]
EVENTS = 300


def write_events(folder: Path, first: int, last: int) -> None:
    lines = (
        json.dumps({"user": f"u{at}", "t": at, "n": at * 31 % 101}) + "\n"
        for at in range(first, last)
    )
    with (folder / "events").open("a") as file:
        file.write("".join(lines))


def stream(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    spark.dataSource.register(AnswersDataSource)
    return spark.readStream.format("acquatop_answers").options(path=str(folder), **options).load()


def added(frame: DataFrame, folder: Path, *columns: str) -> list[tuple[object, ...]]:
    """Return what a run adds to a table, up to the end of what is there."""
    batches: list[list[tuple[object, ...]]] = []

    def take(rows: DataFrame, number: int) -> None:
        batches.append(list(map(tuple, rows.selectExpr(*columns).collect())))

    writer = frame.writeStream.foreachBatch(take).option("checkpointLocation", str(folder))
    writer.trigger(availableNow=True).start().awaitTermination()
    return [row for rows in batches for row in rows]


@pytest.mark.spark
def test_each_answer_comes_once_in_order(spark: SparkSession, tmp_path: Path) -> None:
    answers, checkpoint = tmp_path / "answers", tmp_path / "checkpoint"
    sink = open_sink(f"parquet:{answers}")
    sink.write([answer(window, query) for query in ("a", "A") for window in (2, 4)])
    frame = stream(spark, answers, types='{"n": "bigint", "user": "double"}')
    columns = ("query", "unix_millis(closes)", "rank", "n", "user", "status")
    first = added(frame, checkpoint, *columns)
    assert first == [
        (query, 1000 * window, rank, 3, None, "certified")
        for window in (2, 4)
        for query in ("a", "A")
        for rank in range(1, window % 3 + 1)
    ]
    # What comes again is known, and what is new comes.
    sink.write([answer(4, "a"), answer(5, "a")])
    assert added(frame, checkpoint, "query", "window", "rank") == [("a", 5, 1), ("a", 5, 2)]
    assert added(frame, checkpoint, "query") == []
    only = stream(spark, answers, query="A", maxAnswersPerBatch="1")
    found = added(only, tmp_path / "other", "query", "window", "facts")
    facts = '{"form": "select", "reason": null}'
    assert found == [("A", 2, facts), ("A", 2, facts), ("A", 4, facts)]


@pytest.mark.spark
def test_columns_have_the_types_that_are_known(spark: SparkSession, tmp_path: Path) -> None:
    write_events(tmp_path, 1, 40)
    answers = tmp_path / "answers"
    with engine(tmp_path, until_end=True) as running:
        query = running.register(QUERY, sinks=[open_sink(f"parquet:{answers}")])
        list(query)
        frame = query.to_dataframe(spark)
        types = dict(frame.dtypes)
        assert (types["s"], types["n"], types["closes"]) == ("string", "bigint", "timestamp")
        assert frame.isStreaming
        whole = running.register(
            QUERY.replace("?s ?n FROM", "* FROM").replace("ORDER BY DESC(?n) LIMIT 2", ""),
            name="whole",
        )
        with pytest.raises(UserError, match="sink that a DataFrame can read"):
            whole.to_dataframe(spark)
        rows = added(frame, tmp_path / "checkpoint", "n", "rank")
    expected = [
        (n, rank)
        for first in (1, 11, 21, 31)
        for rank, n in enumerate(
            sorted((at * 31 % 101 for at in range(first, min(first + 10, 40))), reverse=True)[:2], 1
        )
    ]
    assert rows == expected


def test_a_folder_without_answers_needs_the_names_of_columns(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no answers yet"):
        AnswersDataSource({"path": str(tmp_path)}).schema()
    given = AnswersDataSource(
        {"path": str(tmp_path), "variables": '["n"]', "types": '{"n": "int"}'}
    )
    with pytest.raises(UserError, match=r"\?n cannot be of the type(.|\n)*bigint"):
        given.schema()
    with pytest.raises(UserError, match="needs the option path"):
        AnswersDataSource({"variables": "[]"}).streamReader(None)


@pytest.mark.spark
def test_the_documented_program_writes_each_answer(spark: SparkSession, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "connectors.md").read_text("utf-8")
    (shown,) = (text for text in re.findall(r"```python\n(.+?)```", page, re.DOTALL))
    for name in ("events", "catalog.toml", "state", "checkpoint", "table"):
        shown = shown.replace(f'"{name}"', f'"{tmp_path}/{name}"')
    shown = shown.replace("parquet:answers", f"parquet:{tmp_path}/answers")
    shown = shown.replace("state=", "until_end=True, state=")
    (tmp_path / "events").mkdir()
    rows = (
        json.dumps({"user": f"u{at}", "time_ms": f"1970-01-01T00:00:00.{at:03}Z", "mentions": at})
        for at in range(30)
    )
    (tmp_path / "events" / "0.json").write_text("\n".join(rows))
    (tmp_path / "catalog.toml").write_text(FRAME)
    text = QUERY.replace(":s [", ":stream [").replace(":n", ":mentions")
    names: dict[str, Any] = {"spark": spark, "text": text}
    exec(shown, names)
    try:
        assert len(list(names["query"])) == 3
        names["writing"].processAllAvailable()
    finally:
        names["writing"].stop()
        names["engine"].stop()
    found = spark.read.parquet(str(tmp_path / "table")).select("n").collect()
    assert sorted(n for (n,) in found) == [9, 10, 19, 20, 28, 29]


def program(folder: Path, *ends: str) -> list[str]:
    return [sys.executable, "-m", "tests.support.answers_out", str(folder), *ends]


@pytest.mark.spark
@pytest.mark.slow
def test_after_a_kill_each_row_is_in_the_table_once(tmp_path: Path) -> None:
    write_events(tmp_path, 1, EVENTS // 2)
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT)}
    child = subprocess.Popen(
        program(tmp_path),
        env=surroundings,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline()
    write_events(tmp_path, EVENTS // 2, EVENTS)
    assert child.stdout.readline()
    # Its Java goes with it, in the middle of a batch or between two.
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    child.stdout.close()
    programs.run(program(tmp_path, "to the end"), env=surroundings).check_returncode()
    log = sorted((tmp_path / "out" / "_spark_metadata").iterdir(), key=lambda file: file.name)
    names = {
        json.loads(line)["path"].rpartition("/")[2]
        for file in log
        if file.name.isdigit()
        for line in file.read_text().splitlines()[1:]
    }
    found = [
        (row["closes"], row["rank"], row["n"])
        for name in names
        for row in pq.read_table(tmp_path / "out" / name).to_pylist()
    ]
    with engine(tmp_path, until_end=True) as running:
        right = [
            (each.closes_ms, row.rank, int(row.bindings["n"]))
            for each in running.register(QUERY)
            for row in each.rows
        ]
    assert len(right) == EVENTS // 10 * 2
    shown = sorted((round(1000 * closes.timestamp()), rank, n) for closes, rank, n in found)
    assert shown == sorted(right)
