"""Limits of each group and with ties: as in SPARQL, on Spark, and within bounds of memory."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acquatop import Engine, Status
from acquatop.engine.observer import AnswerSeen, Silent
from tests.support.queries.shaped import NS, ShapedQuery, World, run

STAR = "WINDOW :w { ?post :city ?city ; :n ?n ; :by ?by }"


def post(at: int, city: str, n: int) -> dict[str, Any]:
    """Return what one post says."""
    return {"t": 1 + at, "id": f"p{at}", "by": "abc"[at % 3], "city": city, "n": n, "x": 0.0}


def test_the_documented_equivalent_of_a_limit_of_groups_with_ties() -> None:
    page = Path(__file__).parent.parent.parent.parent / "docs" / "language.md"
    _, _, after = page.read_text("utf-8").partition("## Of each group, and with ties")
    equivalent = f"PREFIX : <{NS}> {after.split('```sparql')[1].split('```')[0]}"
    chance = random.Random(3)
    world = World([post(at, chance.choice("xyz"), at % 4) for at in range(40)], arrivals="distinct")
    query = ShapedQuery(
        "?post ?city ?n",
        "WINDOW :w { ?post :city ?city ; :n ?n }",
        ("DESC(?n)",),
        window="RANGE 20ms STEP 5ms",
        per=("city",),
        ties=True,
    )
    most = 0
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(
            world.write(Path(folder)), runtime="local", until_end=True, autostart=False
        ) as engine,
    ):
        handle = engine.register(query.text)
        engine.start()
        for answer in handle:
            store = world.store(world.inside(query, answer))
            found: Any = store.query(equivalent, use_default_graph_as_union=True)
            right = Counter((row["post"].value, int(row["n"].value)) for row in found)
            shown = Counter(
                (str(row.bindings["post"]), int(str(row.bindings["n"]))) for row in answer.rows
            )
            assert shown == right
            most = max(most, len(answer.rows))
    assert most > 3 * 3


@pytest.mark.spark
def test_limits_of_groups_and_with_ties_on_spark(
    spark: SparkSession, executors: None, tmp_path: Path
) -> None:
    people = [{"user": name, "followers": 2, "home": name * 2} for name in "abc"]
    service = "SERVICE :people { ?by :followers ?f ; :home ?home }"
    queries = [
        ShapedQuery("?post ?city ?n", STAR, ("?n",), per=("city",), ties=True),
        ShapedQuery(
            "?post ?n ?home", f"{STAR} {service}", ("DESC(?n + ?f)", "?post"), 2, per=("home",)
        ),
        ShapedQuery(
            "?by ?city (COUNT(*) AS ?a)",
            STAR,
            ("DESC(?a)",),
            1,
            group="GROUP BY ?by ?city",
            per=("city",),
            ties=True,
        ),
    ]
    posts = [post(at, "xy"[at % 2], at % 5) for at in range(40)]
    judged = run(World(posts, people, "distinct"), queries, tmp_path, runtime="spark", spark=spark)
    assert judged.problems == []
    assert all(judged.incremental)
    assert set(judged.statuses) == {Status.EXACT}


class Held(Silent):
    """Note of the most candidates held."""

    most = 0

    def answer(self, seen: AnswerSeen) -> None:
        self.most = max(self.most, seen.candidates)


def test_what_others_outlive_is_dropped_and_never_missed(tmp_path: Path) -> None:
    chance = random.Random(4)
    said = [post(at, chance.choice("xyz"), chance.randrange(2_000)) for at in range(30_000)]
    catalog = World(said, arrivals="distinct").write(tmp_path)
    text = """SELECT ?post ?city ?n FROM NAMED WINDOW :w ON :posts [RANGE 20000ms STEP 2500ms]
        WHERE { WINDOW :w { ?post :city ?city ; :n ?n } }
        ORDER BY DESC(?n) LIMIT 2 PER ?city WITH TIES"""
    held = Held()
    with Engine(catalog, runtime="local", until_end=True, autostart=False, observer=held) as engine:
        handle = engine.register(text)
        engine.start()
        answers = list(handle)
    assert len(answers) > 12
    for answer in answers:
        inside = [each for each in said if answer.opens_ms < each["t"] <= answer.closes_ms]
        right = []
        for city in "xyz":
            of_city = sorted((each["n"] for each in inside if each["city"] == city), reverse=True)
            right += [each for each in of_city if each >= of_city[:2][-1]]
        assert [row.score for row in answer.rows] == sorted(right, reverse=True)
    # Windows hold 20 000; what comes before the next thinning is held, too.
    assert held.most < 8_192
