"""CONSTRUCT and ASK over a top-k: what a SPARQL engine makes of the same windows."""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import hypothesis
import pyoxigraph as ox
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from acquatop import Engine, Status
from acquatop.answer.answer import Answer
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from tests.support.markers import THOROUGH
from tests.support.queries.shaped import NS, ShapedQuery, World

FORMS = (
    "CONSTRUCT { ?post :had ?n ; :twice ?twice . ?post ?by ?city }",
    "CONSTRUCT { [] :of ?post ; :by ?by . :all :have ?n }",
    "CONSTRUCT { ?city :is ?by . ?by ?city ?post }",
    "ASK",
)
SERVICE = "SERVICE :people { ?by :followers ?f ; :home ?home }"
STAR = "WINDOW :w { ?post :n ?n ; :by ?by ; :city ?city }"
WHERES = (
    f"{STAR} BIND(?n * 2 AS ?twice)",
    f"{STAR} FILTER(?n > 2) BIND(?n * 2 AS ?twice)",
    f"{STAR} {SERVICE} BIND(?n + ?f AS ?twice)",
    f"{STAR} {SERVICE} FILTER(?f > ?n) BIND(?n + ?f AS ?twice)",
)
PEOPLE = [{"user": name, "followers": at, "home": "Como"} for at, name in enumerate("abc")]
WINDOW = "RANGE 10ms STEP 4ms"


def posts(chance: Any, count: int) -> list[dict[str, Any]]:
    """Return what a stream says: each post once."""
    return [
        {
            "t": 1 + at,
            "id": f"p{at}",
            "by": chance.choice("abcd"),
            "city": chance.choice(["Como", "Bari"]),
            "n": chance.randrange(5),
            "x": 0.0,
        }
        for at in range(count)
    ]


def made(triples: list[str]) -> Counter[str]:
    """Return triples without the labels of their blank nodes."""
    return Counter(re.sub(r"_:\w+", "_:b", each) for each in triples)


def right(world: World, form: str, where: str, rest: str, answer: Answer) -> Any:
    """Return what an engine makes of the window of an answer."""
    store = world.store(world.inside(ShapedQuery("", "", (), window=WINDOW), answer))
    plain = where.replace("WINDOW :w", "GRAPH :w").replace("SERVICE", "GRAPH")
    found = store.query(f"PREFIX : <{NS}> {form} WHERE {{ {plain} }} {rest}")
    if isinstance(found, ox.QueryBoolean):
        return bool(found)
    return made([f"{each} ." for each in set(found)])  # type: ignore[arg-type,union-attr]


@THOROUGH
@settings(max_examples=40)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(FORMS),
    st.sampled_from(WHERES),
    st.integers(1, 4),
    st.integers(0, 2),
    st.sampled_from([None, "distinct", "latest"]),
    st.sampled_from(["RSTREAM", "RSTREAM", "ISTREAM"]),
)
def test_forms_over_a_top_k(
    chance: Any, form: str, where: str, k: int, offset: int, arrivals: str | None, output: str
) -> None:
    world = World(posts(chance, 25), PEOPLE, arrivals)
    rest = f"ORDER BY DESC(?twice) ?post LIMIT {k} OFFSET {offset}"
    text = (
        f"REGISTER {output} :made AS {form} FROM NAMED WINDOW :w ON :posts [{WINDOW}] "
        f"WHERE {{ {where} }} {rest}"
    )
    with tempfile.TemporaryDirectory() as folder:
        catalog = world.write(Path(folder))
        assert isinstance(bind_query(text, catalog), BoundQuery)
        with Engine(catalog, runtime="local", until_end=True, autostart=False) as engine:
            handle = engine.register(text)
            engine.start()
            answers = list(handle)
    before: Any = False if form == "ASK" else Counter()
    for answer in answers:
        assert answer.status is Status.EXACT
        now = right(world, form, where, rest, answer)
        if form == "ASK":
            assert answer.boolean is (now if output == "RSTREAM" else now and not before)
        elif output == "RSTREAM":
            assert made([*answer.triples]) == now
        elif "[]" not in form:
            assert made([*answer.triples]) == now - before
        before = now
    hypothesis.event(f"{len(answers)} answers")
    assert answers


NETWORK = (
    f"""REGISTER STREAM :best AS CONSTRUCT {{ [] :post ?post ; :n ?n }}
    FROM NAMED WINDOW :w ON :posts [{WINDOW}] WHERE {{ WINDOW :w {{ ?post :n ?n }} }}
    ORDER BY DESC(?n) ?post LIMIT 1 PER ?n""",
    """SELECT ?n (COUNT(*) AS ?times) FROM NAMED WINDOW :v ON :best [RANGE 20ms STEP 20ms]
    WHERE { WINDOW :v { ?row :post ?post ; :n ?n } }
    GROUP BY ?n ORDER BY DESC(?n) LIMIT 5 WITH TIES""",
)


def times(catalog: Any, **options: Any) -> list[list[tuple[str, str]]]:
    """Return what the second query of a network answers."""
    with Engine(catalog, until_end=True, autostart=False, **options) as engine:
        *_, last = [engine.register(text) for text in NETWORK]
        engine.start()
        return [
            [(str(row.bindings["n"]), str(row.bindings["times"])) for row in answer.rows]
            for answer in last
        ]


def test_a_query_reads_the_triples_of_a_top_k(tmp_path: Path) -> None:
    said = [
        {"t": at, "id": f"p{at}", "by": "a", "city": "x", "n": at % 4, "x": 0.0}
        for at in range(1, 41)
    ]
    catalog = World(said, arrivals="distinct").write(tmp_path)
    first, *_ = times(catalog, runtime="local")
    # Five windows close in the first 20 ms; the first holds two numbers, and the others all four.
    assert first == [("3", "4"), ("2", "5"), ("1", "5"), ("0", "4")]


@pytest.mark.spark
def test_a_query_reads_the_triples_of_a_top_k_on_spark(
    spark: SparkSession, executors: None, tmp_path: Path
) -> None:
    said = [
        {"t": at, "id": f"p{at}", "by": "a", "city": "x", "n": at % 4, "x": 0.0}
        for at in range(1, 41)
    ]
    catalog = World(said, arrivals="distinct").write(tmp_path)
    assert times(catalog, spark=spark) == times(catalog, runtime="local")
