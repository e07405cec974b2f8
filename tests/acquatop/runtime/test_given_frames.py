"""Streams whose rows come from DataFrames of the program's own session."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from acquatop import Engine
from acquatop.catalog.catalog import Catalog
from acquatop.errors import UserError
from acquatop.ingest.reduce.contract import Part
from acquatop.runtime import foreign_carrier, frame_parts
from acquatop.runtime.pace import Allowance

pytestmark = pytest.mark.spark

CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "{connector}"
options = {{ {options} }}
[streams.":s".mapping]
format = "columns"
subject = ":user/{{user.name}}"
time = "at"
properties = {{ ":n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 10ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 2"""
SCHEMA = "user struct<name: string>, at timestamp, n decimal(10, 0), tags array<string>"
ROWS = [(f"u{at}", at, at * 7 % 30) for at in range(1, 31)]


def catalog(options: str = "", connector: str = "spark") -> Catalog:
    text = CATALOG.format(options=options, connector=connector)
    return Catalog.parse(text, file=Path("catalog.toml"), variables={})


def write(folder: Path, rows: Sequence[tuple[str, int, int]] = ROWS) -> Path:
    folder.mkdir()
    lines = (
        json.dumps(
            {"user": {"name": user}, "at": f"1970-01-01T00:00:00.{at:03}Z", "n": n, "tags": [user]}
        )
        + "\n"
        for user, at, n in rows
    )
    (folder / "0.json").write_text("".join(lines))
    return folder


def expected(count: int) -> list[list[int]]:
    windows = [[n for _, at, n in ROWS if 10 * w < at <= 10 * w + 10] for w in range(count)]
    return [sorted(each, reverse=True)[:2] for each in windows]


def answered(given: Catalog, frame: DataFrame, state: Path | None = None) -> list[list[int]]:
    with Engine(given, streams={":s": frame}, until_end=True, state=state) as engine:
        query = engine.register(QUERY)
        engine.start()
        return [[int(row.bindings["n"]) for row in answer.rows] for answer in query]


@pytest.mark.parametrize("connector", ["spark", "parquet"])
def test_a_streaming_frame_is_a_stream(connector: str, spark: SparkSession, tmp_path: Path) -> None:
    options = "" if connector == "spark" else 'path = "nowhere"'
    frame = spark.readStream.schema(SCHEMA).json(str(write(tmp_path / "events")))
    found = answered(catalog(options, connector), frame.where("n IS NOT NULL"))
    assert found == expected(3)


def test_a_frame_that_is_not_a_stream_is_a_recording(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.read.schema(SCHEMA).json(str(write(tmp_path / "events")))
    assert answered(catalog(), frame) == expected(3)
    assert answered(catalog(), frame, tmp_path / "state") == expected(3)
    # It has been read: only its last answers come again.
    assert answered(catalog(), frame, tmp_path / "state") == expected(3)[-1:]


@pytest.mark.parametrize("is_stream", [True, False])
@pytest.mark.parametrize("most", [300, 6000, 1 << 20])
def test_parts_that_do_not_fit_at_once_are_fetched_one_after_the_other(
    most: int,
    is_stream: bool,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched = list[list[tuple[int, int]]]()

    def runs(sizes: Sequence[tuple[int, int]], at_most: int) -> Iterator[tuple[int, int]]:
        fetched.append(list(RUNS(sizes, at_most)))
        assert all(size <= at_most for _, size in sizes)
        return iter(fetched[-1])

    monkeypatch.setattr(foreign_carrier, "allowance", lambda _: Allowance(most))
    monkeypatch.setattr(frame_parts, "runs", runs)
    folder = write(tmp_path / "events")
    frame = (spark.readStream if is_stream else spark.read).schema(SCHEMA).json(str(folder))
    assert answered(catalog(), frame, tmp_path / "state") == expected(3)
    if most == 300:
        assert [len(each) > 1 for each in fetched] == [True]
    else:
        assert [len(each) for each in fetched] == ([] if is_stream else [1])


def test_after_a_batch_that_does_not_fit_the_next_is_kept_at_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = list[str]()

    class Noted(frame_parts.FrameParts):
        def _tried(self, parts: DataFrame) -> list[Any] | None:
            done.append("tried")
            return super()._tried(parts)

        def _kept(self, *arguments: Any) -> tuple[list[list[Part]], int]:
            done.append("kept")
            return super()._kept(*arguments)

    monkeypatch.setattr(foreign_carrier, "allowance", lambda _: Allowance(4000))
    monkeypatch.setattr(foreign_carrier, "FrameParts", Noted)
    folder = tmp_path / "events"
    # Two batches with many rows, then those with few.
    for number, (start, stop) in enumerate([(0, 12), (12, 24), (24, 25), (25, 27), (27, 30)]):
        rows = [(400 * user, at, n) for user, at, n in ROWS[start:stop]]
        file = write(tmp_path / str(number), rows) / "0.json"
        os.utime(file, (1_000_000 + number,) * 2)
        folder.mkdir(exist_ok=True)
        file.rename(folder / f"{number}.json")
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    assert answered(catalog(), reader.json(str(folder))) == expected(3)
    assert done == ["tried", "kept", "kept", "kept", "tried", "tried"]


RUNS = frame_parts.runs


def test_columns_are_made_by_expressions(spark: SparkSession, tmp_path: Path) -> None:
    source = write(tmp_path / "events")
    options = (
        f'format = "text", path = "{source}", where = "value LIKE \'%u%\'", '
        f'select = ["from_json(value, \'{SCHEMA}\') AS event", "1 AS one"]'
    )
    text = CATALOG.format(options=options, connector="spark")
    for field in ("user.name", "at", "n"):
        text = text.replace(f'"{field}"', f'"event.{field}"').replace(
            f"{{{field}}}", f"{{event.{field}}}"
        )
    given = Catalog.parse(text, file=Path("catalog.toml"), variables={})
    with Engine(given, spark=spark, until_end=True) as engine:
        answers = list(engine.register(QUERY))
    found = [[int(row.bindings["n"]) for row in answer.rows] for answer in answers]
    assert found == expected(3)


@pytest.mark.parametrize(
    ("options", "change", "said"),
    [
        ("", "n AS m", r'reads: "user.name", "at", "n"|hint: it has'),
        ("", "user AS n", 'the column "n" of <http://example.org/s> is struct<name:string>'),
        ("", "tags AS n", r"is array<string>, and its mapping needs a whole number(.|\n)*explode"),
        ("", "true AS n", r"is boolean(.|\n)*CAST\(n AS STRING\)"),
        ('select = ["nope"]', "n", r'the option "select" of <http://example.org/s> is not under'),
        ('where = "n >"', "n", r'the option "where" of <http://example.org/s> is not understood'),
    ],
)
def test_what_cannot_be_mapped_is_named(
    options: str, change: str, said: str, spark: SparkSession
) -> None:
    frame = spark.createDataFrame([], SCHEMA).selectExpr("user", "at", "tags", "n")
    names = [name for name in ("user", "at", "tags") if name not in change or name == "user"]
    with (
        Engine(
            catalog(options), streams={":s": frame.selectExpr(*names, change)}, until_end=True
        ) as engine,
        pytest.raises(UserError, match=said),
    ):
        engine.register(QUERY)


def test_what_is_no_stream_is_named(spark: SparkSession) -> None:
    frame = spark.createDataFrame([], SCHEMA)
    with pytest.raises(UserError, match=r"no stream <http://example.org/t>(.|\n)*org/s>"):
        Engine(catalog(), streams={":t": frame})
    text = CATALOG.format(options='path = "x"', connector="lines").replace("columns", "json")
    given = Catalog.parse(text, file=Path("catalog.toml"), variables={})
    with pytest.raises(UserError, match=r'its connector is "lines"'):
        Engine(given, streams={":s": frame})
    with (
        Engine(catalog(), streams={":s": frame}) as engine,
        pytest.raises(UserError, match="is not a stream"),
    ):
        engine.register(QUERY)
    with (
        Engine(catalog(), spark=spark) as engine,
        pytest.raises(UserError, match=r"has no source(.|\n)*streams="),
    ):
        engine.register(QUERY)


def test_state_of_spark_is_refused_beside_state_of_the_engine(
    spark: SparkSession, tmp_path: Path
) -> None:
    frame = spark.readStream.schema(SCHEMA).json(str(write(tmp_path / "events")))
    frame = frame.dropDuplicates(["user"])
    assert answered(catalog(), frame) == expected(3)
    with pytest.raises(UserError, match="keeps state in Spark"):
        answered(catalog(), frame, tmp_path / "state")
