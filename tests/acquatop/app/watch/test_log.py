"""The log: lines of JSON, seldom the same one, and nothing in them that is nobody's business."""

from __future__ import annotations

import io
import json
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal

from acquatop.answer.answer import Counts, Row
from acquatop.app.watch import AnswerSeen, BatchSeen, Kept, QueryState, StateSeen
from acquatop.app.watch.json_lines import JsonLines
from acquatop.app.watch.log import REASONS, Level, Log, MessagesAsLines
from acquatop.engine.standstill import Hindrance, Standstill
from acquatop.errors import EnvironmentProblem, UserError
from replica.budget import Spending
from tests.support.empty_answer import NOTHING


class World:
    """A log in a file, and the clock that it looks at."""

    def __init__(self, path: Path, level: Level = Level.INFO) -> None:
        self.path = path
        self.now = 0.0
        self.log = Log(
            JsonLines(str(path)), level=level, wall=lambda: 1_000 + self.now, clock=lambda: self.now
        )

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.path.read_text("ascii").splitlines()]

    def said(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines() if line["event"] == event]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "log")
    yield made
    made.log.close()


def test_a_line_has_time_level_event_and_facts(world: World) -> None:
    world.log.say(Level.INFO, "started", queries=["a\nb", "\N{SNOWMAN}"])
    assert world.lines() == [
        {
            "time": "1970-01-01T00:16:40.000Z",
            "level": "info",
            "event": "started",
            "queries": ["a\nb", "\N{SNOWMAN}"],
        }
    ]


def test_what_is_late_or_bad_is_added_up_and_said_now_and_then(world: World) -> None:
    for second in range(25):
        world.now = float(second)
        world.log.batch(BatchSeen(stream="s", events=10, late=1, bad={"not JSON": 2}))
    assert [line["events"] for line in world.said("late")] == [1, 10, 10]
    world.log.close()
    assert [line["events"] for line in world.said("late")] == [1, 10, 10, 4]
    assert [line["records"] for line in world.said("bad")] == [2, 20, 20, 8]
    assert (
        world.said("bad")[0].items()
        >= {"stream": "s", "reason": "not JSON", "level": "warning"}.items()
    )


def test_reasons_without_end_do_not_become_lines_without_end(world: World) -> None:
    for at in range(200):
        world.log.batch(BatchSeen(stream="s", events=0, bad={f"reason {at}": 1}))
    assert len(world.said("bad")) == REASONS + 1


def test_a_batch_that_takes_long_is_worth_a_line(world: World) -> None:
    world.log.batch(BatchSeen(stream="s", events=10, seconds=0.9))
    for _ in range(3):
        world.log.batch(BatchSeen(stream="s", events=10, seconds=2.5, reduce_seconds=2.0))
    (line,) = world.said("slow_batch")
    assert line.items() >= {"seconds": 2.5, "reduce_seconds": 2.0, "times": 1}.items()


def test_a_remote_s_failure_and_its_end_are_said_once(world: World) -> None:
    failing = AnswerSeen(answer=replace(NOTHING, failure="http://x/ failed: refused"))
    for _ in range(3):
        world.log.answer(failing)
    world.log.answer(AnswerSeen(answer=NOTHING))
    assert world.said("remote_back") == []
    for _ in range(2):
        world.log.answer(AnswerSeen(answer=replace(NOTHING, spending=Spending(1, 1))))
    (failed,) = world.said("remote_failed")
    assert failed["failure"] == "http://x/ failed: refused"
    assert len(world.said("remote_back")) == 1


def test_the_state_directory_s_troubles_and_recoveries_are_said(world: World) -> None:
    world.log.kept(StateSeen(kind=Kept.RECOVERED, stream="s", detail="at batch 7"))
    world.log.kept(StateSeen(kind=Kept.DAMAGED, stream="s", detail="snapshot 8"))
    for _ in range(5):
        world.log.kept(StateSeen(kind=Kept.SNAPSHOT, stream="s", bytes=10))
        world.log.kept(StateSeen(kind=Kept.JOURNAL, stream="s", bytes=10))
    assert [(line["level"], line["event"]) for line in world.lines()] == [
        ("info", "recovered"),
        ("warning", "damaged"),
        ("info", "snapshots"),
    ]
    world.log.close()
    assert world.said("snapshots")[1]["times"] == 4


def test_levels_leave_out_what_is_below_them(tmp_path: Path) -> None:
    seen = BatchSeen(stream="s", events=10, late=3)
    events = {}
    for level in Level:
        world = World(tmp_path / level.name, level)
        world.log.batch(seen)
        world.log.answer(AnswerSeen(answer=NOTHING))
        world.log.query("q", QueryState.REGISTERED)
        world.log.query("q", QueryState.FAILED)
        world.log.close()
        events[level] = [line["event"] for line in world.lines()]
    assert events[Level.DEBUG] == ["batch", "late", "answer", "query_registered", "query_failed"]
    assert events[Level.INFO] == ["late", "query_registered", "query_failed"]
    assert events[Level.WARNING] == events[Level.ERROR] == ["query_failed"]


def test_neither_values_nor_messages_that_may_quote_them_are_written(tmp_path: Path) -> None:
    world = World(tmp_path / "log", Level.DEBUG)
    rows = (Row(1, {"x": Literal("secret")}, 1.0, True, 0.0),)
    world.log.answer(AnswerSeen(answer=replace(NOTHING, rows=rows, counts=Counts(events=1))))
    try:
        int("secret")
    except ValueError as error:
        world.log.failed("query q", error)
    world.log.failed("query q", UserError("a message for people"))
    world.log.close()
    assert "secret" not in world.path.read_text()
    quoting, plain = world.said("failed")
    assert quoting["error"] == "ValueError"
    assert f"{Path(__file__).name}:" in quoting["at"]
    assert plain["message"] == "a message for people"


def test_what_libraries_say_becomes_lines_too(world: World) -> None:
    logger = logging.getLogger("some.library")
    handler = MessagesAsLines(world.log)
    logger.addHandler(handler)
    try:
        logger.warning("it is %s", "odd")
        try:
            raise ValueError("secret")
        except ValueError:
            logger.exception("it failed")
    finally:
        logger.removeHandler(handler)
    assert [(line["level"], line["text"]) for line in world.said("message")] == [
        ("warning", "it is odd"),
        ("error", "it failed"),
    ]
    assert "secret" not in world.path.read_text()


def test_a_log_goes_on_where_it_was(tmp_path: Path) -> None:
    for _ in range(2):
        world = World(tmp_path / "log")
        world.log.say(Level.INFO, "started")
        world.log.close()
        world.log.say(Level.INFO, "dropped")
    assert [line["event"] for line in world.lines()] == ["started", "started"]


def test_a_minus_is_the_standard_error_of_the_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = JsonLines("-")
    monkeypatch.setattr(sys, "stderr", held := io.StringIO())
    lines.write({"event": "x"})
    lines.close()
    lines.write({"event": "y"})
    assert held.getvalue() == '{"event": "x"}\n{"event": "y"}\n'


def test_a_log_that_cannot_be_opened_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(
        EnvironmentProblem, match="the log cannot be written: No such file or directory\n  hint"
    ):
        JsonLines(str(tmp_path / "nowhere" / "log"))


def test_after_a_line_that_was_torn_the_next_is_whole() -> None:
    class Tearing(io.BytesIO):
        """A file on a disk that takes half of the first line, nothing of the second, and then has
        room again.
        """

        calls = 0

        def write(self, data: Any) -> int:
            self.calls += 1
            if self.calls == 2:
                raise OSError(28, "No space left on device")
            return super().write(data[: len(data) // 2] if self.calls == 1 else data)

    file = Tearing()
    lines = JsonLines(file)
    lines.write({"event": "torn"})
    with pytest.raises(OSError, match="No space"):
        lines.write({"event": "lost"})
    lines.write({"event": "whole"})
    lines.write({"event": "another"})
    assert file.getvalue().decode().splitlines()[1:] == [
        '{"event": "whole"}',
        '{"event": "another"}',
    ]


def test_a_watermark_that_stands_still_is_told_now_and_then(world: World) -> None:
    records = {Hindrance.LATE: 3, Hindrance.BAD: 1}
    for second in range(15):
        world.now = float(second)
        still = Standstill(watermark_ms=5, seconds=60.0 + second, records=records)
        world.log.batch(BatchSeen(stream="s", events=1, standstill=still))
    first, second_line = world.said("standstill")
    assert (first["level"], first["stream"], first["watermark_ms"]) == ("warning", "s", 5)
    assert (first["records"], first["main"]) == ({"late": 3, "bad": 1}, "late")
    assert (first["seconds"], second_line["seconds"]) == (60, 70)
