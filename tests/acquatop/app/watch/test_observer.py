"""Observers hand on, and harm nobody."""

from __future__ import annotations

import logging
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rdflib import Literal

from acquatop.answer.answer import Row
from acquatop.app.serve.http_metrics import Meters
from acquatop.app.watch import AnswerSeen, BatchSeen, Kept, QueryState, Several, Silent, StateSeen
from acquatop.app.watch.prometheus import Metrics
from tests.support.empty_answer import NOTHING
from tests.support.worlds import catalog_text

ROOT = Path(__file__).parents[4]

BATCH = BatchSeen(stream="s", events=1)
ANSWER = AnswerSeen(answer=NOTHING)
STATE = StateSeen(kind=Kept.SNAPSHOT, stream="s")


class Noting:
    """An observer that notes what it is told; and one that raises, if it is to."""

    def __init__(self, error: Exception | None = None) -> None:
        self.told: list[object] = []
        self._error = error

    def _note(self, *what: object) -> None:
        self.told.append(what)
        if self._error is not None:
            raise self._error

    def batch(self, seen: BatchSeen) -> None:
        self._note(seen)

    def answer(self, seen: AnswerSeen) -> None:
        self._note(seen)

    def kept(self, seen: StateSeen) -> None:
        self._note(seen)

    def query(self, name: str, state: QueryState) -> None:
        self._note(name, state)

    def failed(self, where: str, error: BaseException) -> None:
        self._note(where, error)


def tell_all(observer: Silent | Several) -> list[object]:
    error = ValueError("x")
    observer.batch(BATCH)
    observer.answer(ANSWER)
    observer.kept(STATE)
    observer.query("q", QueryState.ENDED)
    observer.failed("query q", error)
    return [(BATCH,), (ANSWER,), (STATE,), ("q", QueryState.ENDED), ("query q", error)]


def test_each_is_told_all_in_order() -> None:
    first, second = Noting(), Noting()
    told = tell_all(Several([first, second]))
    assert first.told == second.told == told
    tell_all(Silent())


def test_one_that_raises_is_logged_once_and_the_others_are_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    broken, whole = Noting(ValueError("no disk")), Noting()
    with caplog.at_level(logging.ERROR):
        told = tell_all(Several([broken, whole]))
    assert broken.told == whole.told == told
    assert [record.getMessage() for record in caplog.records] == [
        "Noting raised; the engine goes on without its notes"
    ]


def test_an_interruption_is_no_error_of_an_observer() -> None:
    class Interrupted(Silent):
        def batch(self, seen: BatchSeen) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Several([Interrupted()]).batch(BATCH)


def test_ages_are_those_of_the_rows_that_have_one() -> None:
    rows = tuple(
        Row(at, {"x": Literal(at)}, None, None, age)
        for at, age in enumerate((None, 2.0, 0.0), start=1)
    )
    assert AnswerSeen(answer=replace(NOTHING, rows=rows)).ages_seconds == (2.0, 0.0)


def test_the_observer_in_the_document_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (program,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs/watch.md").read_text("utf-8"), re.DOTALL
    )
    (tmp_path / "catalog.toml").write_text(catalog_text(), "utf-8")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(program, names)
    slowest = names["Slowest"]()
    slowest.answer(AnswerSeen(answer=replace(NOTHING, latency_seconds=0.5)))
    assert slowest.seconds == 0.5
    names["engine"].stop()


def test_every_metric_is_documented_and_every_one_documented_is_there() -> None:
    metrics = Metrics(process=False)
    Meters(metrics.registry)
    families = {each.name for each in metrics.registry.collect()}
    counters = {each.name for each in metrics.registry.collect() if each.type == "counter"}
    names = {f"{name}_total" if name in counters else name for name in families} - {"acquatop"}
    table = (ROOT / "docs/watch.md").read_text("utf-8").split("## Metrics")[1].split("## Log")[0]
    rows = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {f"acquatop_{name}" for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert names == documented - {"acquatop_acquatop_info"}
