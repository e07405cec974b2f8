"""Every shape of ``fixtures/shapes`` in one engine: right, and the same after kills and on Spark.

The answers of a life in process, uninterrupted, are judged by a SPARQL engine. Those of others are
compared with it byte by byte.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from acquatop import Engine
from acquatop.answer.answer import Answer, Status
from acquatop.answer.sinks.json_line import json_line
from examples.oxigraph import OxigraphServer
from tests.support.crash import child
from tests.support.crash.life import Life, content
from tests.support.crash.reaper import Point
from tests.support.disks import quick_folder
from tests.support.queries.shape_oracle import problems
from tests.support.queries.shape_world import ShapeWorld, queries

pytestmark = [pytest.mark.spark, pytest.mark.server]


@dataclass
class Whole:
    """World, and the answers of a life that nothing interrupted."""

    world: ShapeWorld
    life: Life
    answers: dict[str, list[Answer]]

    def lived(self, name: str, *points: Point, runtime: str = "local", **options: Any) -> None:
        """Live, killed at each of the points, then to the end; check that all bytes are equal."""
        folder = self.life.out.parent / name
        life = replace(self.life, state=folder / "state", out=folder / "out", runtime=runtime)
        for seed, point in enumerate(points):
            assert child.end_of(child.start(life, point, seed=seed), [], []), f"{point}: not killed"
        life.live(**options)
        found = {name.partition("/")[2]: text for name, text in content(life.out).items()}
        expected = {
            f"{query}.ndjson": b"".join(json_line(each.canonical()) for each in its)
            for query, its in self.answers.items()
        }
        assert found.keys() == expected.keys()
        differ = [query for query, text in expected.items() if found[query] != text]
        assert [self.life.queries[query.partition(".")[0]] for query in differ] == []


@pytest.fixture(scope="module")
def whole(_server: OxigraphServer) -> Iterator[Whole]:
    world = ShapeWorld()
    _server.update("CLEAR ALL")
    _server.update(world.update)
    with quick_folder() as folder:
        catalog = world.write(folder, _server.query_url)
        life = Life(catalog, folder / "state", folder / "out", queries(), only_lines=True)
        with Engine.from_catalog(
            catalog, runtime="local", until_end=True, autostart=False
        ) as engine:
            running = {
                name: engine.register(text, name=name) for name, text in life.queries.items()
            }
            engine.start()
            answers = {name: list(each) for name, each in running.items()}
        yield Whole(world, life, answers)


def test_every_shape_is_answered_as_sparql_does(whole: Whole) -> None:
    said = [
        f"{text}: {problem}"
        for name, text in whole.life.queries.items()
        for problem in problems(whole.world, text, whole.answers[name])
    ]
    assert said == []
    for name, answers in whole.answers.items():
        is_judged = any(answer.status is not Status.APPROXIMATE for answer in answers)
        text = whole.life.queries[name]
        if "change:" in text and "SERVICE" in text:
            continue  # the remote is asked for less time than that looks back
        assert is_judged, text
        assert any(answer.rows or answer.triples or answer.boolean for answer in answers), text


def test_killed_in_process(whole: Whole) -> None:
    whole.lived("killed", Point("after Committer.commit", 7))


def test_killed_on_spark(whole: Whole, spark: SparkSession) -> None:
    whole.lived("spark", Point("before Delivery.deliver", 7), runtime="spark", spark=spark)
