"""Shared structures for several queries, by number of queries or by the catalog; same answers."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.catalog.vocabulary import Strategy
from acquatop.errors import UserError
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from acquatop.plan.check import check_query, structure_of
from acquatop.plan.grouping import can_share, choice_among, fewest_that_share
from acquatop.runtime import RUNTIMES
from acquatop.topk.strategies import OWN, Family
from rspql.diagnostics import QueryError
from rspql.explain import explain, render

EACH, SHARED = Strategy.EACH.value, Strategy.SHARED.value
MTOPS = ["mtopband", "mtoplist"]
LISTS = [name for name, each in OWN.items() if each.family is Family.LIST and name != EACH]


def catalog(folder: Path, strategy: str | None = None, arrivals: str = "distinct") -> Catalog:
    text = f"""
        [prefixes]
        "" = "http://example.org/"
        [streams.":stream"]
        connector = "lines"
        arrivals = "{arrivals}"
        lateness = "40ms"
        {"" if strategy is None else f'strategy = "{strategy}"'}
        options = {{ path = "{folder}/events", maxBytesPerBatch = 12000 }}
        [streams.":stream".mapping]
        subject = "http://example.org/post/{{id}}"
        time = "t"
        properties = {{ ":value" = {{ field = "value", datatype = "xsd:integer" }} }}
        [services.":people"]
        endpoint = "http://127.0.0.1:9/query"
        refresh = {{ n = 1, items = 1, requests = 1, deadline = "1s" }}
    """
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def text_of(width: int, slide: int, k: int, more: str = "", score: str = "2 * ?value") -> str:
    return f"""SELECT ?post ({score} AS ?score)
    FROM NAMED WINDOW :w ON :stream [RANGE {width}ms STEP {slide}ms]
        WHERE {{ WINDOW :w {{ ?post :value ?value }} {more} }} ORDER BY DESC(?score) LIMIT {k}"""


def some_queries(count: int) -> list[str]:
    chance = random.Random(3)
    asked = [
        [chance.randint(*each) for each in ((20, 400), (10, 90), (1, 9))] for _ in range(count)
    ]
    return [text_of(*each) + chance.choice(["", " OFFSET 2"]) for each in asked]


def lines(start: int, stop: int) -> list[bytes]:
    chance = random.Random(start)
    events = [
        {
            "t": max(1, at - chance.choice([0, 0, 3, 35, 90])),
            "id": at,
            "value": chance.randrange(40),
        }
        for at in range(start, stop)
    ]
    return [json.dumps(each).encode() + b"\n" for each in events]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    (tmp_path / "events").write_bytes(b"".join(lines(1, 900)))
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


def groups_of(engine: Engine) -> list[int]:
    """Return how many queries are answered together, of each group."""
    return sorted(map(len, engine.groups))


@pytest.mark.spark
@pytest.mark.usefixtures("executors")
def test_every_strategy_and_every_runtime_gives_the_same_bytes(
    recording: Path, spark: SparkSession
) -> None:
    texts = some_queries(6)
    right = answered(catalog(recording, EACH), texts)
    assert len(right) == 6
    assert any('"approximate"' in each for said in right.values() for each in said)
    for runtime in RUNTIMES:
        assert answered(catalog(recording, SHARED), texts, runtime, spark=spark) == right
    for name in (*LISTS, *MTOPS):
        assert answered(catalog(recording, name), texts) == right
    assert answered(catalog(recording, "mintopk-list"), texts, "spark", spark=spark) == right


@pytest.mark.parametrize("name", [*LISTS, *MTOPS])
def test_a_list_goes_on_as_if_nothing_had_happened(tmp_path: Path, name: str) -> None:
    events = lines(1, 900)
    (tmp_path / "events").write_bytes(b"".join(events))
    texts = some_queries(3)
    right = answered(catalog(tmp_path, EACH), texts)
    (tmp_path / "events").write_bytes(b"".join(events[:450]))
    with Engine(catalog(tmp_path, name), runtime="local", state=tmp_path / "state") as engine:
        queries = [engine.register(text, name=f"q{at}") for at, text in enumerate(texts)]
        engine.start()
        said = told(list(engine.answers(limit=5)))
        del queries
    with (tmp_path / "events").open("ab") as stream:
        stream.write(b"".join(events[450:]))
    for query, rest in answered(catalog(tmp_path, name), texts, state=tmp_path / "state").items():
        said[query] = list(dict.fromkeys([*said.get(query, ()), *rest]))
        kept = [each for each in right[query] if each in said[query]]
        assert said[query] == kept
        assert said[query][-1] == right[query][-1]


@pytest.mark.parametrize("name", [EACH, *LISTS])
def test_answers_show_the_candidates_of_the_open_windows(tmp_path: Path, name: str) -> None:
    events = [{"t": at, "id": at, "value": at * 7 % 23} for at in range(1, 100)]
    (tmp_path / "events").write_text("".join(json.dumps(each) + "\n" for each in events))
    with Engine(
        catalog(tmp_path, name), runtime="local", until_end=True, show_lists=True
    ) as engine:
        query = engine.register(text_of(30, 10, 3))
        answers = list(query)
    assert len(answers) > 5
    for answer in answers:
        assert answer.lists is not None
        for each in answer.lists:
            # Later arrivals are there, too: they came in the same batch.
            inside = [e for e in events if each.opens_ms < e["t"] <= each.closes_ms]
            best = sorted(inside, key=lambda e: (-e["value"], -e["t"]))[:3]
            assert [row.time_ms for row in each.k_list] == [e["t"] for e in best]
            assert [row.score for row in each.k_list] == [2 * e["value"] for e in best]
        assert answer.to_json()["lists"] == [each.to_json() for each in answer.lists]


@pytest.mark.parametrize("name", [EACH, *LISTS])
def test_an_explanation_names_the_list(tmp_path: Path, name: str) -> None:
    found = catalog(tmp_path, name)
    analysis = check_query(text_of(100, 50, 3), catalog=found)
    structure = structure_of(analysis, found)
    assert structure == {"name": name, "because": "a hint asks for it", "shared": False}
    assert f"structure: {name}, because a hint asks for it" in render(
        explain(analysis, structure=structure)
    )


@pytest.mark.parametrize(("count", "groups"), [(2, [1, 1]), (40, [40])])
def test_many_share_unasked_and_few_do_not(recording: Path, count: int, groups: list[int]) -> None:
    with Engine(catalog(recording), runtime="local", autostart=False) as engine:
        for number in range(count):
            engine.register(text_of(100_000 + number, 50_000, 5))
        engine.start()
        assert groups_of(engine) == groups


def test_who_comes_later_joins_and_who_was_there_stays(recording: Path) -> None:
    with Engine(catalog(recording), runtime="local") as engine:
        for number in range(40):
            engine.register(text_of(100_000 + number, 50_000, 5))
        *others, together = groups_of(engine)
        assert others == [1] * (40 - together)
        assert 20 < together < 40


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Engine]:
    (tmp_path / "events").write_bytes(b"")
    with Engine(catalog(tmp_path, SHARED), runtime="local") as engine:
        yield engine


def test_queries_come_and_go_while_it_runs(live: Engine, tmp_path: Path) -> None:
    first = live.register(text_of(200, 100, 3), name="first")
    with (tmp_path / "events").open("ab", buffering=0) as stream:
        stream.write(b"".join(lines(1, 400)))
        before = [answer.closes_ms for answer in first.answers(limit=2)]
        second = live.register(text_of(120, 60, 4), name="second")
        assert groups_of(live) == [2]
        stream.write(b"".join(lines(400, 700)))
        answers = list(second.answers(limit=2))
        first.stop()
        stream.write(b"".join(lines(700, 1000)))
        answers += second.answers(limit=3)
    assert before == [100, 200]
    assert answers[0].opens_ms >= 399 - 90
    assert groups_of(live) == [1]
    closes = [answer.closes_ms for answer in answers]
    assert closes == list(range(closes[0], closes[0] + 5 * 60, 60))
    for answer in answers:
        assert len(answer.rows) == 4


# What is chosen -----------------------------------------------------------------------------------


def bound(folder: Path, text: str, strategy: str | None = None) -> BoundQuery:
    found = bind_query(text, catalog(folder, strategy))
    assert isinstance(found, BoundQuery)
    return found


def test_the_number_of_queries_decides_unless_the_catalog_does(tmp_path: Path) -> None:
    query = bound(tmp_path, text_of(100_000, 50_000, 10))
    assert can_share(query)
    fewest = fewest_that_share(query)
    assert fewest is not None
    assert fewest > 1
    assert choice_among(query, [query] * (fewest - 2)).strategy is Strategy.EACH
    assert choice_among(query, [query] * (fewest - 1)).strategy is Strategy.SHARED
    for hint in (EACH, SHARED):
        choice = choice_among(bound(tmp_path, text_of(100_000, 50_000, 10), hint), [query] * 99)
        assert (choice.strategy, choice.why) == (hint, "a hint asks for it")


def test_an_explanation_says_which_and_why(tmp_path: Path) -> None:
    text = text_of(100_000, 50_000, 10)
    said = structure_of(check_query(text, catalog=catalog(tmp_path)), catalog(tmp_path))
    assert said is not None
    assert said["name"] == EACH
    assert said["because"].startswith("one query: about ")
    fewest = fewest_that_share(bound(tmp_path, text))
    assert said["because"].endswith(f"; {fewest} like it or more share a shared-skyline")
    hinted = catalog(tmp_path, SHARED)
    analysis = check_query(text, catalog=hinted)
    structure = structure_of(analysis, hinted)
    assert structure == {"name": SHARED, "because": "a hint asks for it", "shared": True}
    assert "for all queries together" in render(explain(analysis, structure=structure))


def test_a_wrong_strategy_is_said(tmp_path: Path) -> None:
    with pytest.raises(
        CatalogError, match=r'catalog.toml:8: unknown strategy "shared" .*\n  hint: did you mean'
    ):
        catalog(tmp_path, "shared")
    with pytest.raises(
        CatalogError, match='needs a stream whose arrivals are distinct, not "latest"'
    ):
        catalog(tmp_path, SHARED, arrivals="latest")
    joined = text_of(9, 3, 2, "SERVICE :people { ?post :followers ?f }", score="?value + ?f")
    with pytest.raises(
        QueryError, match="a remote's values change: shared-skyline is for scores that never change"
    ):
        bind_query(joined, catalog(tmp_path, SHARED))
    bind_query(joined, catalog(tmp_path, EACH))


def test_what_goes_on_is_answered_as_it_was(recording: Path, tmp_path: Path) -> None:
    texts = [text_of(100_000 + number, 50_000, 5) for number in range(40)]
    state: dict[str, Any] = {"state": tmp_path / "state"}
    assert choice_among(bound(tmp_path, texts[0])).strategy is Strategy.EACH
    answered(catalog(recording), texts[:1], **state)
    # Live, so that the queries are still there when they are looked at.
    with Engine(catalog(recording), runtime="local", **state) as engine:
        for number, text in enumerate(texts):
            engine.register(text, name=f"q{number}")
        engine.start()
        assert groups_of(engine) == [1, 39]
    with pytest.raises(UserError, match="take the old settings again"):
        answered(catalog(recording, SHARED), texts[:1], **state)
