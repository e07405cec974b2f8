"""Streams that Spark reads by a source of its own, with an engine that keeps its state or without."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.catalog import Catalog
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.runtime.checkpoint import Checkpoint
from acquatop.sinks.callback import CallbackSink
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


class KilledError(Exception):
    """The end of an engine, in the midst of a batch."""


def live(folder: Path, state: Path | None, spark: SparkSession, *, dies_at: int | None = None) -> list[str]:
    """Return the answers that an engine gives before it is done, or dies while it gives one."""
    given: list[str] = []

    def note(answer: Answer) -> None:
        if len(given) == dies_at:
            raise KilledError("killed")
        given.append(json.dumps(answer.canonical()))

    options = FILES.format(folder=folder)
    dying = nullcontext() if dies_at is None else pytest.raises(BaseException, match="killed")
    with Engine(catalog(options), spark=spark, state=state, until_end=True, autostart=False) as engine, dying:
        query = engine.register(QUERY, sinks=[CallbackSink(note)])
        engine.start()
        list(query)
    return given


def test_an_engine_that_dies_goes_on_with_the_same_batches(spark: SparkSession, tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / "events", number, events_of(number))
    whole = live(tmp_path / "events", None, spark)
    first = live(tmp_path / "events", tmp_path / "state", spark, dies_at=1)
    rest = live(tmp_path / "events", tmp_path / "state", spark)
    assert len(whole) > 3
    assert first == whole[:1]
    # The batch whose answers were not all given gives them again; none is missing, and none differs.
    assert whole[-len(rest) :] == rest
    assert len(whole) - len(rest) <= 1
    assert live(tmp_path / "events", tmp_path / "state", spark)[:-1] == []


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


def test_what_a_source_keeps_for_itself_is_taken_over_by_the_next_checkpoint(tmp_path: Path) -> None:
    first = Checkpoint(tmp_path)
    (first.path / "sources" / "0").mkdir(parents=True)
    (first.path / "sources" / "0" / "0").write_text("noted")
    (tmp_path / "acquatop-unfinished-x" / "sources").mkdir(parents=True)
    second = Checkpoint(tmp_path, {"batch": 3, "offsets": "v1\n{}\n7"})
    assert (second.path / "sources" / "0" / "0").read_text() == "noted"
    assert list(tmp_path.iterdir()) == [second.path]
    assert not (Checkpoint(tmp_path).path / "sources").exists()
