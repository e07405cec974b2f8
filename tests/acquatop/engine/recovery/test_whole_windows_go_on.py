"""Queries that an older version evaluated over whole windows go on from their state."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acquatop import Engine
from acquatop.answer.answer import Answer
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.plan.whole_windows import in_whole_windows

CATALOG = """
[streams."http://example.org/stream"]
connector = "lines"
start_ms = 0
[streams."http://example.org/stream".options]
path = "{path}"
[streams."http://example.org/stream".mapping]
subject = "http://example.org/e/{{id}}"
time = "t"
[streams."http://example.org/stream".mapping.properties]
"http://example.org/by" = {{ field = "by", datatype = "http://example.org/user/{{}}" }}
"http://example.org/n" = {{ field = "n", datatype = "xsd:integer" }}
"""
TEXT = """PREFIX : <http://example.org/>
SELECT ?e ?n FROM NAMED WINDOW :w ON :stream [RANGE 9s STEP 3s]
WHERE { WINDOW :w { ?e :by ?u ; :n ?n } } ORDER BY DESC(?n) LIMIT 3"""
TRIPLES = """PREFIX : <http://example.org/>
CONSTRUCT { ?e :had ?n } FROM NAMED WINDOW :w ON :stream [RANGE 9s STEP 3s]
WHERE { WINDOW :w { ?e :by ?u ; :n ?n } } ORDER BY DESC(?n) ?e LIMIT 3"""
HALF = 20


def lines(first: int, last: int) -> str:
    return "".join(
        json.dumps({"t": 1000 * at, "id": at % 7, "by": at % 3, "n": at * 5 % 11}) + "\n"
        for at in range(first, last)
    )


def shown(answer: Answer) -> object:
    said = answer.canonical()
    return said["results"], said.get("triples")


def answers(engine: Engine, until_ms: int) -> dict[int, object]:
    found: dict[int, object] = {}
    for answer in engine.answers():
        found[answer.window] = shown(answer)
        if answer.closes_ms >= until_ms:
            break
    return found


@pytest.mark.parametrize(("way", "text"), [(0, TEXT), (1, TEXT), (0, TRIPLES)])
def test_a_query_that_was_evaluated_over_whole_windows_goes_on_so(
    way: int, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    stream = tmp_path / "stream.jsonl"
    stream.write_text(lines(1, HALF), "utf-8")
    (tmp_path / "catalog.toml").write_text(CATALOG.format(path=stream), "utf-8")
    with Engine.from_catalog("catalog.toml", runtime="local", state=tmp_path / "state") as engine:
        bound = bind_query(text, engine.catalog, name="best")
        assert isinstance(bound, BoundQuery)
        ways = list(in_whole_windows(bound, engine.catalog))
        with monkeypatch.context() as older:
            older.setattr("acquatop.engine.engine.bind_query", lambda *_, **__: ways[way])
            engine.register(text, name="best")
        engine.start()
        before = answers(engine, 1000 * (HALF - 5))
    with stream.open("a", encoding="utf-8") as file:
        file.write(lines(HALF, 2 * HALF))
    with Engine.from_catalog("catalog.toml", runtime="local", state=tmp_path / "state") as engine:
        engine.register(text, name="best")
        engine.start()
        assert engine.groups == [["best"]]
        after = answers(engine, 1000 * (2 * HALF - 5))
    with Engine.from_catalog("catalog.toml", runtime="local", until_end=True) as engine:
        engine.register(text, name="best")
        engine.start()
        right = {each.window: shown(each) for each in engine.answers()}
    assert len(before) > 2
    assert len(after) > 3
    assert all(right[window] == found for window, found in {**before, **after}.items())
