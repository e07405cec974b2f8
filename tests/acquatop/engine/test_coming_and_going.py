"""Queries that come and go: what they leave behind, and what observers hear of them last."""

from __future__ import annotations

import gc
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from acquatop.catalog.catalog import Catalog
from acquatop.engine.engine import Engine
from acquatop.engine.evaluation_slot import EvaluationSlot
from acquatop.engine.handle import RegisteredQuery
from acquatop.engine.observer import AnswerSeen, Observer, QueryState, Silent
from acquatop.query.sparql.engine import Graphs
from acquatop.query.sparql.worker_engine import WorkerEngine
from tests.support.staged import LIMIT
from tests.support.waiting import until
from tests.support.worlds import Event, catalog_text

QUERY = """
PREFIX : <http://example.org/>
SELECT ?user (2 * ?mentions AS ?score)
FROM NAMED WINDOW :w ON :stream [RANGE 9ms STEP 3ms]
WHERE { WINDOW :w { ?user :mentions ?mentions } } ORDER BY DESC(?score) LIMIT 2
"""


def engine(folder: Path, observer: Observer | None = None, *, autostart: bool = True) -> Engine:
    catalog = Catalog.parse(
        catalog_text(start="start_ms = 0"), file=folder / "catalog.toml", variables={}
    )
    return Engine(catalog, runtime="local", observer=observer, autostart=autostart)


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events"
    file.touch()
    return file


def slots() -> int:
    gc.collect()
    return sum(isinstance(each, EvaluationSlot) for each in gc.get_objects())


def test_a_stream_that_brings_nothing_keeps_no_query_that_has_gone(events: Path) -> None:
    with engine(events.parent) as made:
        made.register(QUERY, name="stays")
        before = slots()
        for _ in range(3):
            made.register(QUERY.replace("9ms", "12ms"), name="goes").stop()
        assert slots() == before


def test_a_query_that_is_stopped_before_the_start_is_not_started(events: Path) -> None:
    with engine(events.parent, autostart=False) as made:
        made.register(QUERY.replace("2 *", "3 *").replace("[RANGE 9ms STEP 3ms]", "[ELEMENTS 3]"))
        made.register(QUERY, name="goes").stop()
        made.start()
        assert made.groups == [["query"]]


def test_a_query_that_waits_for_the_start_and_goes_leaves_nothing(events: Path) -> None:
    before = slots()
    with engine(events.parent, autostart=False) as made:
        made.register(QUERY.replace("LIMIT 2", "")).stop()
        assert slots() == before
        assert made.queries == []


@pytest.mark.parametrize("limit", [" LIMIT 2", ""])
def test_a_query_may_be_registered_again_in_the_moment_of_its_end(events: Path, limit: str) -> None:
    class Again(Silent):
        def query(self, name: str, state: QueryState) -> None:
            if state is QueryState.ENDED and not again:
                again.append(made.register(text, name=name))

    again: list[RegisteredQuery] = []
    text = QUERY.replace(" LIMIT 2", limit)
    events.write_bytes(b"".join(Event(at, f"u{at % 3}", at).line() + b"\n" for at in range(1, 20)))
    catalog = Catalog.parse(
        catalog_text(start="start_ms = 0"), file=events.parent / "catalog.toml", variables={}
    )
    with Engine(catalog, runtime="local", until_end=True, observer=Again()) as made:
        first = list(made.register(text, name="q"))
        until(lambda: bool(again))
        second = list(again[0])
    assert [each.rows for each in second] == [each.rows for each in first] != []


def test_nothing_is_said_of_a_query_after_its_removal(events: Path) -> None:
    class Notes(Silent):
        def __init__(self) -> None:
            self.said: list[str] = []
            self.going: threading.Thread | None = None

        def answer(self, seen: AnswerSeen) -> None:
            if self.going is None:
                going = threading.Thread(target=query.stop)
                going.start()
                self.going = going
                until(lambda: made.queries == [])
            self.said.append("answer")

        def query(self, name: str, state: QueryState) -> None:
            self.said.append(str(state))

    notes = Notes()
    with engine(events.parent, notes) as made:
        query = made.register(QUERY)
        with events.open("ab") as stream:
            stream.writelines(Event(at, "ann", at).line() + b"\n" for at in range(1, 40))
        until(lambda: notes.going is not None)
        assert notes.going is not None
        notes.going.join(LIMIT)
        until(lambda: "removed" in notes.said)
    assert notes.said[0] == "registered"
    assert notes.said[-1] == "removed"


def test_queries_that_come_while_others_of_their_kind_go_are_evaluated(events: Path) -> None:
    def come_and_go(name: str) -> bool:
        query = made.register(QUERY, name=name)
        is_at_work = any(query.name in group for group in made.groups)
        query.stop()
        return is_at_work

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with engine(events.parent) as made, ThreadPoolExecutor(4) as pool:
            assert all(pool.map(come_and_go, (f"q{at}" for at in range(200))))
            assert made.groups == []
    finally:
        sys.setswitchinterval(interval)


def test_a_query_that_cannot_be_evaluated_leaves_no_process(
    events: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[WorkerEngine] = []

    def select(self: WorkerEngine, *_: object, **__: object) -> bytes:
        opened.append(self)
        whole(self, "ASK {}", Graphs(), on_nothing=True)
        raise ValueError("not this one")

    whole = WorkerEngine.select
    monkeypatch.setattr(WorkerEngine, "select", select)
    with engine(events.parent) as made:
        with pytest.raises(ValueError, match="not this one"):
            made.register(QUERY.replace("LIMIT 2", ""))
        assert [each.process for each in opened] == [None]
