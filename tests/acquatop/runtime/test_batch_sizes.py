"""Batches as large as the driver has room for: Spark plans them so, or takes one in as several.

The same answers, and the same after a crash.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.answer.sinks.callback import CallbackSink
from acquatop.catalog.catalog import Catalog
from acquatop.engine.stream_driver import StreamDriver
from acquatop.runtime import Batch, pace, stream_carrier
from acquatop.runtime.checkpoint import offset_in
from acquatop.runtime.pace import Allowance
from connectors.offsets_by_file import reached

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("executors")]
EVENTS = 6_000
CATALOG = """[prefixes]
"" = "http://example.org/"
[streams.":s"]
connector = "lines"
arrivals = "all"
lateness = "20ms"
options = {{ path = "{folder}/events"{limit} }}
[streams.":s".mapping]
subject = "http://example.org/user/{{user}}"
time = "t"
properties = {{ ":n" = {{ field = "n", datatype = "xsd:integer" }} }}
"""
QUERY = """PREFIX : <http://example.org/> SELECT ?s ?n
FROM NAMED WINDOW :w ON :s [RANGE 400ms STEP 200ms]
WHERE { WINDOW :w { ?s :n ?n } } ORDER BY DESC(?n) LIMIT 3"""


class KilledError(Exception):
    """The end of an engine."""


@dataclass
class Life:
    """Answers of an engine, and the ends of its batches.

    The plan's number, the place, the size after it.
    """

    dies_at: int = 0
    answers: list[str] = field(default_factory=list)
    batches: list[tuple[int, Any, object]] = field(default_factory=list)

    def give(self, answer: Answer) -> None:
        self.answers.append(json.dumps(answer.canonical()))

    def take(self, driver: StreamDriver, batch: Batch) -> None:
        position = batch.position
        if "offsets" in position:
            self.batches.append(
                (position["batch"], offset_in(position["offsets"]), position["pace"])
            )
        if self.dies_at == len(self.batches) > 0:
            raise KilledError("killed")
        TAKE(driver, batch)


TAKE = StreamDriver.take


def write(folder: Path, lateness: int) -> None:
    """Write events up to so many milliseconds too late, with a longer stretch in the middle."""
    lines = []
    for at in range(EVENTS):
        user = f"u{at}{'x' * 300}" if EVENTS // 3 < at < EVENTS // 2 else f"u{at % 400}"
        event = {"user": user, "t": 1_000 + at - at * 7 % (lateness + 1), "n": at * 31 % 1_009}
        lines.append(json.dumps(event) + "\n")
    (folder / "events").write_text("".join(lines))


def live(
    folder: Path,
    spark: SparkSession | None,
    state: str | None,
    dies_at: int = 0,
    *,
    limit: str = "",
) -> Life:
    """Read all that there is, unless it dies before."""
    life = Life(dies_at)
    text = CATALOG.format(folder=folder, limit=limit)
    catalog = Catalog.parse(text, file=Path("catalog.toml"), variables={})
    runtime = "local" if spark is None else "spark"
    kept = None if state is None else folder / state
    dying = pytest.raises(KilledError) if dies_at else nullcontext()
    with (
        patch.object(StreamDriver, "take", lambda driver, batch: life.take(driver, batch)),
        Engine(catalog, runtime=runtime, spark=spark, until_end=True, state=kept) as engine,
        dying,
    ):
        query = engine.register(QUERY, sinks=[CallbackSink(life.give)])
        engine.start()
        list(query)
    return life


@pytest.fixture
def cramped(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let the driver have room for little: 30 kB, or the parameter.

    Return how many bytes batches have sent that were too large for it.
    """
    exceeded: list[int] = []
    room = getattr(request, "param", 30_000)
    note = pace.Pace.exceeded

    def exceed(self: pace.Pace, read: int, would_send: int) -> None:
        exceeded.append(would_send)
        note(self, read, would_send)

    monkeypatch.setattr(stream_carrier, "allowance", lambda spark: Allowance(room))
    monkeypatch.setattr(pace, "_FIRST_BYTES", 2_000)
    monkeypatch.setattr(pace.Pace, "exceeded", exceed)
    return exceeded


@pytest.mark.parametrize("cramped", [8_000], indirect=True)
@pytest.mark.parametrize("knows", [True, False])
def test_what_could_be_one_batch_gives_the_same_bytes_as_many(
    spark: SparkSession,
    tmp_path: Path,
    cramped: list[int],
    monkeypatch: pytest.MonkeyPatch,
    knows: bool,
) -> None:
    """Spark plans a few batches, unless it cannot ask a source for less than all."""
    if not knows:
        monkeypatch.setattr(stream_carrier, "paced", lambda source, folder: source)
    write(tmp_path, lateness=20)
    right = live(tmp_path, None, None)
    found = live(tmp_path, spark, "state")
    assert found.answers == right.answers
    assert len(right.answers) > 25
    assert len(found.batches) > 10
    numbers = [number for number, _, _ in found.batches]
    assert sorted(set(numbers)) == list(range(numbers[-1] + 1))
    assert (numbers[-1] > 0) is knows
    assert len(set(numbers)) < len(numbers)
    assert cramped == []


@pytest.mark.parametrize("cramped", [8_000], indirect=True)
def test_a_batch_that_would_send_more_than_there_is_room_for_is_cut_again(
    spark: SparkSession, tmp_path: Path, cramped: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pace, "_FIRST_BYTES", 1 << 20)
    write(tmp_path, lateness=20)
    found = live(tmp_path, spark, "state")
    assert found.answers == live(tmp_path, None, None).answers
    assert len(found.batches) > 10
    # At once, all of it was too much; nothing was sent of it.
    assert cramped[0] > 8_000
    assert len(cramped) < 4


def ends(life: Life) -> list[tuple[int, object]]:
    return [(reached(offset["events"]), pace) for _, offset, pace in life.batches]


def test_batches_of_a_plan_keep_to_the_limit_of_the_source(
    spark: SparkSession, tmp_path: Path
) -> None:
    write(tmp_path, lateness=20)
    limit = ", maxBytesPerBatch = 40000"
    found = live(tmp_path, spark, "state", limit=limit)
    assert found.answers == live(tmp_path, None, None, limit=limit).answers
    sizes = np.diff([0, *(end for end, _ in ends(found))])
    # Only the last one is smaller than it may be.
    assert max(sizes) <= 40_000 < min(sizes[:-1]) + 500
    assert sum(sizes) == (tmp_path / "events").stat().st_size
    assert len({number for number, _, _ in found.batches}) < len(sizes) / 4


@pytest.mark.parametrize("dies_at", [1, 4, 9])
def test_a_restart_reads_on_as_it_would_have_been_read(
    spark: SparkSession, tmp_path: Path, cramped: list[int], dies_at: int
) -> None:
    # So late that it is the cut into batches which decides what is too late.
    write(tmp_path, lateness=90)
    whole = live(tmp_path, spark, "whole")
    assert len(whole.batches) > 10
    first = live(tmp_path, spark, "state", dies_at)
    second = live(tmp_path, spark, "state")
    kept = dies_at - 1
    assert first.batches[:kept] == whole.batches[:kept]
    # The numbers of plans differ: Spark's next plan begins where the last batch was left.
    assert ends(second) == ends(whole)[kept:]
    again = next(
        at
        for at in range(len(first.answers) + 1)
        if first.answers[at:] == second.answers[: len(first.answers) - at]
    )
    assert first.answers[:again] + second.answers == whole.answers
