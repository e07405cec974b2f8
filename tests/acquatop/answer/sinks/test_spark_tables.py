"""Answers as Spark sees them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from acquatop.answer.answer import Answer
from acquatop.answer.sinks import open_sink
from acquatop.answer.sinks.frame import FrameSink, answers_frame
from tests.support.sink_samples import QUERY, answer

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = [
    "query",
    "window",
    "opens",
    "closes",
    "rank",
    "score",
    "status",
    "user",
    "n",
    "boolean",
    "terms",
    "facts",
]


def test_spark_reads_the_folder_as_a_table_and_passes_over_what_is_not_finished(
    spark: SparkSession, tmp_path: Path
) -> None:
    sink = open_sink(f"parquet:{tmp_path}")
    for window in (1, 2, 2):
        sink.write([answer(window), answer(window, "b")])
    (tmp_path / ".b.x.parquet.part").write_bytes(b"PAR1")
    table = spark.read.parquet(str(tmp_path))
    assert table.columns == COLUMNS
    found = table.filter("user is not null").selectExpr(
        "query",
        "window",
        "unix_millis(closes)",
        "rank",
        "score",
        "user",
        "cast(n as int)",
        "terms['n'].datatype",
    )
    assert sorted(map(tuple, found.collect())) == sorted(
        (
            query,
            window,
            1000 * window,
            rank,
            10.5 - rank,
            f"urn:u{window}",
            3,
            "http://www.w3.org/2001/XMLSchema#integer",
        )
        for query in (QUERY, "b")
        for window in (1, 2)
        for rank in range(1, window % 3 + 1)
    )


def test_bounds_of_any_year_are_timestamps(spark: SparkSession, tmp_path: Path) -> None:
    year_10000 = 253_402_300_800_000
    wide = replace(answer(2), opens_ms=-(10**15), closes_ms=year_10000)
    open_sink(f"parquet:{tmp_path}").write([wide])
    for frame in (spark.read.parquet(str(tmp_path)), answers_frame(spark, [wide])):
        bounds = frame.selectExpr("unix_millis(opens)", "unix_millis(closes)").distinct().collect()
        assert list(map(tuple, bounds)) == [(-(10**15), year_10000)]


def test_answers_become_frames(spark: SparkSession) -> None:
    assert answers_frame(spark, [], ["user", "n"]).columns == COLUMNS
    assert answers_frame(spark, []).collect() == []
    given: list[tuple[Answer, int, list[str]]] = []

    def function(frame: DataFrame, shown: Answer) -> None:
        given.append((shown, frame.count(), frame.columns))

    answers = [answer(2), answer(3)]
    FrameSink(spark, function).write(answers)
    assert given == [(answers[0], 2, COLUMNS), (answers[1], 0, COLUMNS)]
