"""Streams that Spark reads by a source of its own, with an engine that keeps its state or without."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acquatop import Engine
from acquatop.catalog import Catalog
from acquatop.errors import EnvironmentProblem, UserError
from tests.worlds import Event

pytestmark = pytest.mark.spark

CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "spark"
arrivals = "distinct"
options = {{ {options} }}
[streams.":s".mapping]
format = "{format}"
subject = ":user/{{{subject}}}"
time = "{time}"
properties = {{ ":n" = {{ field = "{number}", datatype = "{datatype}" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE 4ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 2"""
FILES = 'format = "text", path = "{folder}", maxFilesPerTrigger = 1'


def catalog(options: str, **changes: str) -> Catalog:
    values = {"format": "json", "subject": "user", "time": "t", "number": "mentions", "datatype": "xsd:integer"}
    text = CATALOG.format(options=options, **{**values, **changes})
    return Catalog.parse(text, file=Path("catalog.toml"), variables={})


def write(folder: Path, number: int, events: Sequence[Event]) -> None:
    """Write a file whole, as Spark wants it."""
    folder.mkdir(exist_ok=True)
    hidden = folder / f"_{number}"
    hidden.write_bytes(b"".join(event.line() + b"\n" for event in events))
    hidden.rename(folder / f"{number}.txt")


def events_of(number: int) -> list[Event]:
    return [Event(4 * number + at % 4, f"u{number}-{at}", (7 * at + number) % 11) for at in range(1, 9)]


def test_items_in_files_that_spark_reads_are_answered(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(2):
        write(tmp_path / "events", number, events_of(number))
    given = catalog(FILES.format(folder=tmp_path / "events"))
    with Engine(given, spark=spark, until_end=True) as engine:
        answers = list(engine.register(QUERY))
    assert sum(answer.counts.events for answer in answers) == 16
    with Engine(given, spark=spark, until_end=True, state=tmp_path / "state") as engine:
        engine.register(QUERY)
        with pytest.raises(UserError, match="cannot go on"):
            engine.start()


def test_rows_in_columns_are_matched(spark: SparkSession) -> None:
    options = 'format = "rate-micro-batch", rowsPerBatch = 40, numPartitions = 2, advanceMillisPerBatch = 5'
    columns = {"subject": "value", "time": "timestamp", "number": "value", "datatype": ":key/{}"}
    with Engine(catalog(options, format="columns", **columns), spark=spark) as engine:
        answer = next(iter(engine.register(QUERY)))
    assert len(answer.rows) == 2
    for row in answer.rows:
        assert str(row.bindings["s"]).rpartition("/")[2] == str(row.bindings["n"]).rpartition("/")[2]


@pytest.mark.parametrize(
    ("options", "runtime", "error", "said"),
    [
        (
            'format = "kafkaesque"',
            "spark",
            EnvironmentProblem,
            r'<http://example.org/s> as "kafkaesque"(.|\n)*packages',
        ),
        ('format = "rate"', "spark", UserError, r'reads: "value"|hint: it has "timestamp", "value"'),
        ('format = "rate"', "local", UserError, "a source of Spark's, which needs Spark"),
    ],
)
def test_what_cannot_be_read_is_named(
    spark: SparkSession, options: str, runtime: str, error: type[Exception], said: str
) -> None:
    given = catalog(options, format="columns" if runtime == "spark" else "json")
    with (
        Engine(given, spark=spark if runtime == "spark" else None, runtime=runtime) as engine,
        pytest.raises(error, match=said),
    ):
        engine.register(QUERY)
