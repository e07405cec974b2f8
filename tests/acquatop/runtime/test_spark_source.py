"""Streams that Spark reads by a source of its own, with a state directory or without."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.answer.sinks.callback import CallbackSink
from acquatop.catalog.catalog import Catalog
from acquatop.engine.state.place import RemotePlace
from acquatop.engine.stream_driver import StreamDriver
from acquatop.errors import EnvironmentProblem, UserError
from acquatop.runtime import Batch
from acquatop.runtime.checkpoint import Checkpoint, offset_in
from tests.support.s3.running import new_place
from tests.support.worlds import Event

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
NOTE = 'v1\n{"batchWatermarkMs":0}\n{"logOffset":7}'
FILES = 'format = "text", path = "{folder}", maxFilesPerTrigger = 1'


def catalog(options: str, **changes: str) -> Catalog:
    values = {
        "format": "json",
        "subject": "user",
        "time": "t",
        "number": "mentions",
        "datatype": "xsd:integer",
    }
    text = CATALOG.format(options=options, **{**values, **changes})
    return Catalog.parse(text, file=Path("catalog.toml"), variables={})


def write(folder: Path, number: int, events: Sequence[Event]) -> None:
    """Write a file whole, as Spark wants it, a second after the one before.

    It reads them in that order.
    """
    folder.mkdir(exist_ok=True)
    hidden = folder / f"_{number}"
    hidden.write_bytes(b"".join(event.line() + b"\n" for event in events))
    os.utime(hidden, (1_000_000 + number,) * 2)
    hidden.rename(folder / f"{number}.txt")


def events_of(number: int) -> list[Event]:
    return [
        Event(4 * number + at % 4, f"u{number}-{at}", (7 * at + number) % 11) for at in range(1, 9)
    ]


class KilledError(Exception):
    """The end of an engine."""


@dataclass
class Life:
    """Answers of an engine, and its batches: their numbers, and Spark's offsets behind them."""

    dies_at: tuple[str, int] | None = None
    """The nth time that a batch is taken in, or an answer given out.

    that does not happen any more.
    """
    answers: list[str] = field(default_factory=list)
    batches: list[tuple[int, object]] = field(default_factory=list)

    def give(self, answer: Answer) -> None:
        self.answers.append(json.dumps(answer.canonical()))
        if self.dies_at == ("give", len(self.answers)):
            self.answers.pop()
            raise KilledError("killed")

    def take(self, driver: StreamDriver, batch: Batch) -> None:
        self.batches.append((batch.position["batch"], offset_in(batch.position["offsets"])))
        if self.dies_at == ("take", len(self.batches)):
            raise KilledError("killed")
        TAKE(driver, batch)


TAKE = StreamDriver.take


def live(
    folder: Path,
    state: str | RemotePlace,
    spark: SparkSession,
    dies_at: tuple[str, int] | None = None,
) -> Life:
    """Read all that there is, unless it dies before."""
    life = Life(dies_at)
    given = catalog(FILES.format(folder=folder / "events"))
    dying = nullcontext() if dies_at is None else pytest.raises(KilledError, match="killed")
    with (
        patch.object(StreamDriver, "take", lambda driver, batch: life.take(driver, batch)),
        Engine(
            given,
            spark=spark,
            until_end=True,
            state=folder / state if isinstance(state, str) else state,
        ) as engine,
        dying,
    ):
        query = engine.register(QUERY, sinks=[CallbackSink(life.give)])
        engine.start()
        list(query)
    return life


@pytest.mark.parametrize("is_remote", [False, True])
def test_an_engine_that_dies_goes_on_with_the_batches_that_it_has_not_kept(
    spark: SparkSession, tmp_path: Path, request: pytest.FixtureRequest, is_remote: bool
) -> None:
    """In an object store the next life finds nothing on its disk."""
    if is_remote:
        request.getfixturevalue("s3")
    state: str | RemotePlace = new_place() if is_remote else "state"
    for number in range(6):
        write(tmp_path / "events", number, events_of(number))
    whole = live(tmp_path, "whole", spark)
    assert whole.batches == [(number, {"logOffset": number}) for number in range(6)]
    assert len(whole.answers) > 5

    first = live(tmp_path, state, spark, ("take", 3))
    # The batch that was under way comes again as it was, without the file after it.
    second = live(tmp_path, state, spark, ("give", 2))
    # That batch was kept, but its answers were not all given out: only they come again.
    third = live(tmp_path, state, spark)
    assert first.batches == whole.batches[:3]
    assert second.batches == whole.batches[2 : 2 + len(second.batches)]
    assert third.batches == whole.batches[2 + len(second.batches) :] != []
    given = first.answers
    for life in (second, third):
        again = next(
            at for at in range(len(given) + 1) if given[at:] == life.answers[: len(given) - at]
        )
        assert again >= len(given) - 1
        given = given[:again] + life.answers
    assert given == whole.answers

    # One that has come to its end goes on with what has been added since.
    assert live(tmp_path, state, spark).batches == []
    write(tmp_path / "events", 6, events_of(6))
    assert live(tmp_path, state, spark).batches == [(6, {"logOffset": 6})]


def test_rows_in_columns_are_matched(spark: SparkSession) -> None:
    options = (
        'format = "rate-micro-batch", rowsPerBatch = 40, numPartitions = 2, '
        "advanceMillisPerBatch = 5"
    )
    columns = {"subject": "value", "time": "timestamp", "number": "value", "datatype": ":key/{}"}
    with Engine(catalog(options, format="columns", **columns), spark=spark) as engine:
        answer = next(iter(engine.register(QUERY)))
    assert len(answer.rows) == 2
    for row in answer.rows:
        assert (
            str(row.bindings["s"]).rpartition("/")[2] == str(row.bindings["n"]).rpartition("/")[2]
        )


@pytest.mark.parametrize(
    ("options", "runtime", "error", "said"),
    [
        (
            'format = "kafkaesque"',
            "spark",
            EnvironmentProblem,
            r'<http://example.org/s> as "kafkaesque"(.|\n)*packages',
        ),
        (
            'format = "rate"',
            "spark",
            UserError,
            r'reads: "value"|hint: it has "timestamp", "value"',
        ),
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


def test_what_a_source_keeps_for_itself_is_taken_over_by_the_next_checkpoint(
    tmp_path: Path,
) -> None:
    first = Checkpoint(tmp_path)
    for name, text in {
        "sources/0/0": "noted",
        "sources/0/.1.tmp": "",
        "offsets/4": NOTE,
        "offsets/5": NOTE,
    }.items():
        (first.path / name).parent.mkdir(parents=True, exist_ok=True)
        (first.path / name).write_text(text)
    (tmp_path / "acquatop-unfinished-x" / "sources").mkdir(parents=True)
    second = Checkpoint(tmp_path, {"batch": 3, "offsets": NOTE}, repeats=True)
    assert list(tmp_path.iterdir()) == [second.path]
    assert [file.name for file in (second.path / "sources" / "0").iterdir()] == ["0"]
    assert sorted(file.name for file in (second.path / "offsets").iterdir()) == ["2", "3", "4"]
    (second.path / "offsets" / "4").write_text(NOTE[:20])
    third = Checkpoint(tmp_path, {"batch": 3, "offsets": NOTE}, repeats=True)
    assert sorted(file.name for file in (third.path / "offsets").iterdir()) == ["2", "3"]
    assert not (Checkpoint(tmp_path).path / "sources").exists()
