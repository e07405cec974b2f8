"""Evaluations that exceed a limit cost their query an answer, and nobody else anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from acquatop import Engine
from acquatop.answer.unanswered import Unanswered
from acquatop.catalog.catalog import Catalog
from acquatop.engine.observer import QueryState, Silent
from tests.support.markers import THOROUGH

pytestmark = THOROUGH

STREAM = "http://example.org/s"
CATALOG = f"""
[evaluation]
memory_bytes = 134217728
timeout = "20s"
[streams."{STREAM}"]
connector = "lines"
start_ms = 0
options = {{ path = "events" }}
[streams."{STREAM}".mapping]
subject = "http://example.org/{{k}}"
time = "t"
properties = {{ "http://example.org/p" = {{ field = "p", datatype = "xsd:integer" }} }}
"""
PREFIX = "PREFIX : <http://example.org/> "
WINDOW = "FROM NAMED WINDOW :w ON :s [RANGE 10s STEP 10s]"
GOOD = f"{PREFIX} SELECT ?s ?p {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?p }} }}"
DOUBLED = " ".join(f"BIND(CONCAT(?x{at}, ?x{at}) AS ?x{at + 1})" for at in range(50))
# Twice as long as memory, but only if the window holds a 7.
GREEDY = (
    f"{PREFIX} SELECT ?s (STRLEN(?x50) AS ?n) {WINDOW} WHERE {{ WINDOW :w {{ ?s :p ?p }}"
    f" BIND(IF(?p = 7, 'xxxxxxxxxx', '') AS ?x0) {DOUBLED} }}"
)


class Notes(Silent):
    """Observer that keeps windows without an answer, and states of queries."""

    def __init__(self) -> None:
        self.lost: list[Unanswered] = []
        self.states: list[tuple[str, QueryState]] = []

    def unanswered(self, window: Unanswered) -> None:
        self.lost.append(window)

    def query(self, name: str, state: QueryState) -> None:
        self.states.append((name, state))


def write(folder: Path, values: list[int]) -> Catalog:
    """Write one event per window, with some values."""
    lines = (
        json.dumps({"t": 10_000 * at + 5_000, "k": "a", "p": p}) for at, p in enumerate(values)
    )
    (folder / "events").write_text("\n".join(lines) + "\n")
    (folder / "catalog.toml").write_text(CATALOG)
    (folder / "greedy.rspql").write_text(GREEDY)
    (folder / "good.rspql").write_text(GOOD)
    return Catalog.load(folder / "catalog.toml", variables={})


def test_a_greedy_window_costs_its_query_one_answer(tmp_path: Path) -> None:
    notes = Notes()
    catalog = write(tmp_path, [1, 7, 2, 7, 7, 3])
    engine = Engine(catalog, runtime="local", until_end=True, observer=notes, autostart=False)
    with engine:
        greedy, good = engine.register(GREEDY, name="greedy"), engine.register(GOOD, name="good")
        engine.start()
        answered = [answer.closes_ms for answer in greedy]
        assert [answer.closes_ms for answer in good] == [10_000 * at for at in range(1, 7)]
    assert answered == [10_000, 30_000, 60_000]
    assert [(each.query, each.closes_ms) for each in notes.lost] == [
        ("greedy", 20_000),
        ("greedy", 40_000),
        ("greedy", 50_000),
    ]
    assert {each.reason for each in notes.lost} == {"memory"}
    assert "134,217,728 bytes" in notes.lost[0].message


def test_a_query_that_loses_several_answers_in_a_row_is_set_aside(tmp_path: Path) -> None:
    notes = Notes()
    catalog = write(tmp_path, [1, 7, 7, 7, 7, 7])
    engine = Engine(catalog, runtime="local", until_end=True, observer=notes, autostart=False)
    with engine:
        greedy, good = engine.register(GREEDY, name="greedy"), engine.register(GOOD, name="good")
        engine.start()
        assert len(list(good)) == 6
        with pytest.raises(Exception, match="3 windows in a row have no answer") as failed:
            list(greedy)
        assert "134,217,728 bytes" in str(failed.value)
    assert [each.closes_ms for each in notes.lost] == [20_000, 30_000, 40_000]
    assert ("greedy", QueryState.FAILED) in notes.states


@pytest.mark.parametrize("values", [[1, 7], [1, 7, 7, 7, 7]], ids=["once", "set aside"])
def test_a_restart_is_not_stopped_by_it(tmp_path: Path, values: list[int]) -> None:
    catalog = write(tmp_path, values)
    for life in range(2):
        if life:
            write(tmp_path, [*values, 2, 3])
        notes = Notes()
        with Engine(
            catalog,
            runtime="local",
            until_end=True,
            observer=notes,
            state=tmp_path / "state",
            autostart=False,
        ) as engine:
            engine.register(GREEDY, name="greedy", backlog=0)
            good = engine.register(GOOD, name="good")
            engine.start()
            closes = [answer.closes_ms for answer in good]
        assert closes[-1] == 10_000 * (len(values) + 2 * life)
        assert notes.lost or life


def test_a_counted_window_without_an_answer_is_named_by_its_times(tmp_path: Path) -> None:
    notes = Notes()
    catalog = write(tmp_path, [1, 7, 2])
    text = GREEDY.replace("[RANGE 10s STEP 10s]", "[ELEMENTS 1 STEP 1]")
    with Engine(catalog, runtime="local", until_end=True, observer=notes) as engine:
        answered = [answer.closes_ms for answer in engine.register(text)]
    assert answered == [5_000, 25_000]
    assert [(each.opens_ms, each.closes_ms) for each in notes.lost] == [(14_999, 15_000)]


def test_the_command_says_it_and_takes_limits(tmp_path: Path) -> None:
    write(tmp_path, [1, 7, 2])
    options = "--catalog catalog.toml --runtime local --until-end --json"
    limits = "--evaluation-memory 64M --evaluation-timeout 15s"
    done = subprocess.run(
        [
            sys.executable,
            *"-m acquatop run greedy.rspql good.rspql".split(),
            *options.split(),
            *limits.split(),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 5
    first, last = done.stderr.strip().splitlines()
    assert first.startswith("acquatop: greedy: no answer for the window until 1970-01-01T00:00:20")
    assert "67,108,864 bytes" in first
    assert last == "acquatop: greedy: 1 window without an answer"
