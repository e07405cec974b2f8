"""Joins of services are the same on Spark, in several batches and with late records."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from acquatop import Answer, Engine
from tests.support.joined_recordings import QUERIES, Recorded


def answers(folder: Path, query: str, spark: SparkSession | None = None) -> list[Answer]:
    runtime = "local" if spark is None else "spark"
    catalog = folder / "catalog.toml"
    with Engine.from_catalog(catalog, runtime=runtime, spark=spark, until_end=True) as engine:
        return list(engine.register(query, name="joined"))


@pytest.mark.spark
@pytest.mark.parametrize("place", [0, 1, 4], ids=["many", "two services", "chained"])
def test_spark_gives_the_same_answers(place: int, tmp_path: Path, spark: SparkSession) -> None:
    world = Recorded(tmp_path, QUERIES[place], seed=11)
    expected = answers(tmp_path, world.query)
    assert any(answer.rows for answer in expected)
    assert sum(answer.counts.late for answer in expected) > 0
    found = answers(tmp_path, world.query, spark)
    assert [each.canonical() for each in found] == [each.canonical() for each in expected]
