"""Settings of Spark in a catalog, and what the command line puts in their place."""

from __future__ import annotations

from pathlib import Path

import pytest

from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.catalog.spark_settings import SparkSettings


def load(text: str, **variables: str) -> SparkSettings:
    return Catalog.parse(text, file=Path("catalog.toml"), variables=variables).spark


def test_a_catalog_without_any_leaves_all_open() -> None:
    assert not load("")


def test_a_master_and_properties_are_taken() -> None:
    found = load(
        '[spark]\nmaster = "spark://${HOST}:7077"\n'
        'conf = { "spark.executor.memory" = "4g", "spark.cores.max" = 4, "spark.a.b" = true }',
        HOST="h",
    )
    assert found.properties() == {
        "spark.master": "spark://h:7077",
        "spark.executor.memory": "4g",
        "spark.cores.max": "4",
        "spark.a.b": "true",
    }


def test_what_is_given_comes_before_what_is_usual() -> None:
    usual = SparkSettings("yarn", {"spark.a": "1", "spark.b": "1"})
    given = SparkSettings(None, {"spark.master": "local[1]", "spark.a": "2"})
    assert given.over(usual).properties() == {
        "spark.master": "local[1]",
        "spark.a": "2",
        "spark.b": "1",
    }
    assert SparkSettings("local[3]").over(usual).properties()["spark.master"] == "local[3]"
    assert SparkSettings().over(usual).properties() == usual.properties()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('master = "loca"', "catalog.toml:2: 'loca' is no master of Spark's"),
        ("master = 3", '"master" must be a text'),
        ('mastr = "yarn"', 'did you mean "master"?'),
        ('conf = { "driver.memory" = "4g" }', "their names begin with spark."),
        ('conf = { "spark.master" = "x" }', "'x' is no master"),
        ('conf = { "spark.remote" = "sc://h" }', "is for Spark Connect, which is not supported"),
        ('master = "yarn"\nconf = { "spark.master" = "local" }', "name two masters"),
        ('conf = { "spark.a" = [] }', '"spark.a" must be a text'),
        ('conf = { spark.a = "1" }', 'write a name in quotes: "spark.driver.memory" = "4g"'),
        ('conf = "x"', '"conf" must be a table'),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(CatalogError) as caught:
        load(f"[spark]\n{text}")
    assert said in str(caught.value)
