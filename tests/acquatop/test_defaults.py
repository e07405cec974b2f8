"""Queries of all shapes with catalogs that name only required keys, judged by rdflib.

Each remote knows all that it is asked for, so that no answer may be approximate. Queries are data
in ``fixtures/defaults``; no test names a setting.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acquatop import Engine, Status
from acquatop.answer.answer import Answer
from acquatop.catalog.catalog import Catalog
from examples.oxigraph import OxigraphServer
from tests.support.markers import THOROUGH
from tests.support.minimal_oracle import problems
from tests.support.minimal_worlds import (
    CORE,
    KINDS,
    Query,
    Remotes,
    catalog_of,
    file_streams,
    queries,
    remotes,
)

pytestmark = pytest.mark.server
SERVICE = queries("service")
ENDPOINT = queries("endpoint")
STREAM = queries("stream")


@pytest.fixture
def people(tmp_path: Path, server: OxigraphServer) -> Iterator[Remotes]:
    with remotes(tmp_path, server) as found:
        yield found


def wrong(
    folder: Path, asked: Sequence[Query], service: str = "", spark: SparkSession | None = None
) -> tuple[list[str], list[Answer]]:
    """Return what is wrong with the answers of queries that run together, and the answers.

    The clock stands still, so that no deadline passes.
    """
    text = catalog_of(file_streams(folder), service)
    catalog = Catalog.parse(text, file=folder / "catalog.toml", variables={})
    runtime = "local" if spark is None else "spark"
    with Engine(
        catalog, runtime=runtime, spark=spark, until_end=True, autostart=False, clock=lambda: 0.0
    ) as engine:
        running = [engine.register(query.text, name=query.name) for query in asked]
        engine.start()
        found = [list(each) for each in running]
    said = [
        f"{query.name}, {problem}"
        for query, answers in zip(asked, found, strict=True)
        for problem in problems(query.text, answers)
    ]
    return said, [answer for answers in found for answer in answers]


def without_approximate(answers: Sequence[Answer]) -> list[str]:
    return [
        f"{answer.query}, {answer.closes_ms}: {answer.status}, {answer.reason}"
        for answer in answers
        if answer.status is Status.APPROXIMATE
    ]


@THOROUGH
def test_the_stream_alone(tmp_path: Path) -> None:
    said, answers = wrong(tmp_path, STREAM)
    assert said == []
    assert {answer.status for answer in answers} == {Status.EXACT}


@THOROUGH
def test_an_endpoint(tmp_path: Path, people: Remotes) -> None:
    said, answers = wrong(tmp_path, [*SERVICE, *ENDPOINT], people.table("sparql"))
    assert said + without_approximate(answers) == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "sparql"])
def test_other_remotes(kind: str, tmp_path: Path, people: Remotes) -> None:
    asked = [query for query in SERVICE if query.name in CORE]
    said, answers = wrong(tmp_path, asked, people.table(kind))
    assert said == []
    if kind == "push":
        # Nobody is called fay, which a feed cannot say.
        reasons = {answer.reason for answer in answers if answer.status is Status.APPROXIMATE}
        assert all(reason and reason.startswith("1 of the ") for reason in reasons)
    else:
        assert without_approximate(answers) == []


@THOROUGH
def test_spark(tmp_path: Path, people: Remotes, spark: SparkSession) -> None:
    asked = [query for query in SERVICE if query.name in CORE]
    asked += [Query(f"stream_{query.name}", query.text) for query in STREAM if query.name in CORE]
    said, answers = wrong(tmp_path, asked, people.table("sparql"), spark)
    assert said + without_approximate(answers) == []
