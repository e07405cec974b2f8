"""Patterns about several subjects of RDF documents, from a folder of files to answers."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acquatop import Engine
from acquatop.answer.answer import Answer, Status
from tests.support.crash import child
from tests.support.crash.killing import strikes
from tests.support.crash.life import Life, content
from tests.support.crash.reaper import POINTS, Point
from tests.support.queries.documents import Documents
from tests.support.queries.record_patterns import is_right

WORLD = Documents(7, "", "?n", events=40, subjects=4, richness=0.9, width=9, slide=3)
QUERIES = {
    "optional": replace(WORLD, pattern="?e :link ?f . ?f :n ?n OPTIONAL { ?f :by ?u }"),
    "path": replace(WORLD, pattern="?e :n ?n ; :link*/:by ?u"),
    "sums": replace(
        WORLD,
        pattern="{ SELECT ?u (SUM(?n) AS ?s) WHERE { ?e :by ?u ; :link/:n ?n } GROUP BY ?u }",
        shown="?u ?s",
        score="2 * ?s",
    ),
}


def written(folder: Path, world: Documents, *, lateness: int) -> Path:
    """Write documents up to 3 ms out of order, and the catalog; return its path."""
    chance = random.Random(world.seed)
    (folder / "documents").mkdir()
    coming = sorted(world.records, key=lambda each: each["t"] + chance.randint(0, 3))
    for at, each in enumerate(coming):
        (folder / "documents" / f"{at:03}.ttl").write_text(world.line(each), "utf-8")
    catalog = folder / "catalog.toml"
    catalog.write_text(world.catalog_text(f'lateness = "{lateness}ms"'), "utf-8")
    return catalog


def answers(engine: Engine) -> dict[str, list[Answer]]:
    handles = {name: engine.register(each.text, name=name) for name, each in QUERIES.items()}
    engine.start()
    return {name: list(handle) for name, handle in handles.items()}


def test_documents_are_answered_as_sparql_does(tmp_path: Path) -> None:
    catalog = written(tmp_path, WORLD, lateness=3)
    with Engine.from_catalog(catalog, runtime="local", until_end=True, autostart=False) as engine:
        found = answers(engine)
    rows = 0
    for name, each in found.items():
        assert {answer.status for answer in each} == {Status.EXACT}
        assert all(is_right(QUERIES[name], answer) for answer in each)
        rows += sum(len(answer.rows) for answer in each)
    assert rows > 20


def test_whoever_is_killed_gives_the_same_bytes(tmp_path: Path) -> None:
    texts = {name: each.text for name, each in QUERIES.items()}
    catalog = written(tmp_path, WORLD, lateness=1)
    whole = Life(catalog, tmp_path / "state", tmp_path / "out", texts)
    whole.live()
    right = content(tmp_path / "out")
    assert any(b"approximate" in each for each in right.values()), "some documents are late"
    chance, struck = random.Random(11), 0
    for run in range(3):
        life = Life(catalog, tmp_path / f"state{run}", tmp_path / f"out{run}", texts)
        for name in chance.sample(POINTS, 8):
            struck += strikes(Point(name, chance.randint(1, 4)), life.live)
        if not run:
            point = Point("before Delivery.deliver", 1)
            struck += child.end_of(child.start(life, point), [], [])
        life.live()
        assert content(tmp_path / f"out{run}") == right
    assert struck > 3
    assert sum(map(len, right.values())) > 1_000


@pytest.mark.spark
def test_spark_gives_the_same_answers(tmp_path: Path, spark: SparkSession) -> None:
    catalog = written(tmp_path, WORLD, lateness=1)
    with Engine.from_catalog(catalog, runtime="local", until_end=True, autostart=False) as engine:
        expected = answers(engine)
    with Engine.from_catalog(catalog, spark=spark, until_end=True, autostart=False) as engine:
        found = answers(engine)
    assert {name: [each.canonical() for each in of] for name, of in found.items()} == {
        name: [each.canonical() for each in of] for name, of in expected.items()
    }
