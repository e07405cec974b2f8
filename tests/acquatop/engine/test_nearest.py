"""Queries for what is nearest to a point of each: one grid, and the answers of each alone."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.catalog.catalog import Catalog
from acquatop.plan.check import check_query, structure_of
from rspql.explain import explain, render

ELEMENTS, RANGE = "[ELEMENTS 60 STEP 1]", "[RANGE 90ms STEP 30ms]"


def catalog(folder: Path, strategy: str | None = None, arrivals: str = "distinct") -> Catalog:
    asked = "" if strategy is None else f'strategy = "{strategy}"'
    text = f"""
        [prefixes]
        "" = "http://example.org/"
        [streams.":pings"]
        connector = "lines"
        arrivals = "{arrivals}"
        lateness = "20ms"
        {asked}
        options = {{ path = "{folder}/events", maxBytesPerBatch = 9000 }}
        [streams.":pings".mapping]
        subject = "http://example.org/ping/{{id}}"
        time = "t"
        [streams.":pings".mapping.properties]
        ":taxi" = {{ field = "taxi" }}
        ":x" = {{ field = "x", datatype = "xsd:double" }}
        ":y" = {{ field = "y", datatype = "xsd:double" }}
    """
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def text_of(
    x: float, y: float, window: str = ELEMENTS, *, k: int = 3, output: str = "ISTREAM"
) -> str:
    return f"""REGISTER {output} :near AS SELECT ?taxi ?far
        FROM NAMED WINDOW :w ON :pings {window}
        WHERE {{ WINDOW :w {{ ?ping :taxi ?taxi ; :x ?x ; :y ?y }}
                 BIND((?x - {x}) * (?x - {x}) + (?y - {y}) * (?y - {y}) AS ?far) }}
        ORDER BY ?far LIMIT {k}"""


def some_queries(count: int) -> list[str]:
    chance = random.Random(4)
    return [
        text_of(
            round(chance.random(), 2),
            round(chance.random(), 2),
            chance.choice([ELEMENTS, RANGE]),
            k=chance.randint(1, 4),
            output=chance.choice(["ISTREAM", "RSTREAM"]),
        )
        for _ in range(count)
    ]


def lines(start: int, stop: int) -> list[bytes]:
    chance = random.Random(start)
    events: list[dict[str, Any]] = [
        {
            "t": max(1, at - chance.choice([0, 0, 3, 18, 70])),
            "id": at,
            "taxi": f"taxi {at % 40}",
            "x": round(chance.random(), 1),
            "y": round(chance.random(), 3),
        }
        for at in range(start, stop)
    ]
    for event in events[::37]:
        del event["x"]
    return [json.dumps(each).encode() + b"\n" for each in events]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    (tmp_path / "events").write_bytes(b"".join(lines(1, 500)))
    return tmp_path


def told(answers: Sequence[Answer]) -> dict[str, list[str]]:
    """Return what each query is told, but for what depends on the clock."""
    said: dict[str, list[str]] = {}
    for answer in answers:
        document = answer.to_json()
        del document["latency_ms"], document["emitted"]
        said.setdefault(answer.query, []).append(json.dumps(document))
    return said


def answered(
    catalog: Catalog, texts: Sequence[str], runtime: str = "local", **more: Any
) -> dict[str, list[str]]:
    with Engine(catalog, runtime=runtime, until_end=True, autostart=False, **more) as engine:
        for number, text in enumerate(texts):
            engine.register(text, name=f"q{number}")
        engine.start()
        return told(list(engine.answers()))


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
def test_a_grid_changes_no_answer(recording: Path, spark: SparkSession) -> None:
    texts = some_queries(9)
    right = answered(catalog(recording, "pane-dominance"), texts)
    assert len(right) == 9
    assert any('"approximate"' in each for said in right.values() for each in said)
    for found in (catalog(recording), catalog(recording, "nearest-grid")):
        assert answered(found, texts) == right
    assert answered(catalog(recording), texts, "spark", spark=spark) == right


def test_queries_are_on_one_grid_unless_the_catalog_says_otherwise(recording: Path) -> None:
    texts = [text_of(at / 10, 0.5, k=1 + at % 3) for at in range(8)]
    for strategy, groups in ((None, [8]), ("block-skyline", [1] * 8), ("RAPF", [1] * 8)):
        with Engine(catalog(recording, strategy), runtime="local", autostart=False) as engine:
            for text in texts:
                engine.register(text)
            engine.start()
            assert sorted(map(len, engine.groups)) == groups


@pytest.mark.parametrize("window", [ELEMENTS, RANGE])
def test_an_explanation_names_the_grid(tmp_path: Path, window: str) -> None:
    for strategy, name in ((None, "nearest-grid"), ("pane-dominance", "pane-dominance")):
        found = catalog(tmp_path, strategy)
        analysis = check_query(text_of(0.1, 0.2, window), catalog=found)
        structure = structure_of(analysis, found)
        said = render(explain(analysis, structure=structure))
        assert f"structure: {name}, because" in said
        assert ("rank the same points by distances" in said) == (strategy is None)


@pytest.mark.parametrize(
    ("change", "to"),
    [
        ("ORDER BY ?far", "ORDER BY DESC(?far)"),
        ("(?x - 0.1) * (?x - 0.1)", "(?x - 0.1) * (?x - 0.2)"),
        ("(?x - 0.1) * (?x - 0.1) + ", ""),
        ("(?y - 0.2) * (?y - 0.2)", "(?x - 0.2) * (?x - 0.2)"),
    ],
)
def test_what_is_no_distance_has_another_structure(tmp_path: Path, change: str, to: str) -> None:
    text = text_of(0.1, 0.2)
    assert change in text
    found = catalog(tmp_path)
    structure = structure_of(check_query(text.replace(change, to), catalog=found), found)
    assert structure is not None
    assert structure["name"] == "block-skyline"
    replaced = catalog(tmp_path, arrivals="latest")
    structure = structure_of(check_query(text, catalog=replaced), replaced)
    assert structure is not None
    assert structure["name"] == "refilled"


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "events").write_bytes(b"")
    with Engine(catalog(tmp_path), runtime="local") as engine:
        yield engine


def test_queries_come_and_go_while_it_runs(live: Engine, tmp_path: Path) -> None:
    first = live.register(text_of(0.1, 0.1, output="RSTREAM"), name="first")
    with (tmp_path / "events").open("ab", buffering=0) as stream:
        stream.write(b"".join(lines(1, 200)))
        assert [answer.window for answer in first.answers(limit=3)] == [0, 1, 2]
        second = live.register(text_of(0.9, 0.9, k=5, output="RSTREAM"), name="second")
        assert [len(each) for each in live.groups] == [2]
        stream.write(b"".join(lines(200, 300)))
        answers = list(second.answers(limit=2))
        first.stop()
        stream.write(b"".join(lines(300, 400)))
        answers += second.answers(limit=100)
    assert [answer.window for answer in answers] == list(range(102))
    assert [len(answer.rows) for answer in answers[5:]] == [5] * 97


def test_a_grid_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    events = lines(1, 500)
    (tmp_path / "events").write_bytes(b"".join(events))
    texts = some_queries(6)
    right = answered(catalog(tmp_path), texts)
    (tmp_path / "events").write_bytes(b"".join(events[:300]))
    with Engine(catalog(tmp_path), runtime="local", state=tmp_path / "state") as engine:
        for number, text in enumerate(texts):
            engine.register(text, name=f"q{number}")
        engine.start()
        said = told(list(engine.answers(limit=40)))
    (tmp_path / "events").write_bytes(b"".join(events))
    for query, rest in answered(catalog(tmp_path), texts, state=tmp_path / "state").items():
        said[query] = list(dict.fromkeys([*said.get(query, ()), *rest]))
        assert said[query] == [each for each in right[query] if each in said[query]]
        assert said[query][-1] == right[query][-1]


@pytest.mark.parametrize("window", [ELEMENTS, RANGE])
def test_what_was_answered_without_a_grid_goes_on_so(recording: Path, window: str) -> None:
    texts, state = [text_of(0.3, 0.1, window)], recording / "state"
    asked = "pane-dominance" if window == RANGE else "block-skyline"
    right = answered(catalog(recording, asked), texts)
    events = (recording / "events").read_bytes().splitlines(keepends=True)
    (recording / "events").write_bytes(b"".join(events[:300]))
    with Engine(catalog(recording, asked), runtime="local", state=state) as engine:
        query = engine.register(texts[0], name="q0")
        engine.start()
        said = told(list(query.answers(limit=2)))
    (recording / "events").write_bytes(b"".join(events))
    rest = answered(catalog(recording), texts, state=state)
    both = list(dict.fromkeys([*said["q0"], *rest["q0"]]))
    assert both == [each for each in right["q0"] if each in both]
    assert both[-1] == right["q0"][-1]
