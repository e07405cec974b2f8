"""Functions of a catalog: called by queries on both roads, checked, and imported when needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark import cloudpickle

from acquatop.catalog.catalog import Catalog, CatalogError
from acquatop.engine.engine import Engine
from acquatop.plan.check import check_query
from rspql.diagnostics import QueryError
from tests.support.declared_functions import decay

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = """
[prefixes]
"" = "http://example.org/"

[functions.decay]
call = "tests.support.declared_functions:decay"
directions = [-1]
range = [0, 1]

[functions.":ofOne"]
call = "tests.support.declared_functions:of_one"
directions = [0, 0]

[streams.":s"]
connector = "lines"
options = { path = "events" }

[streams.":s".mapping]
subject = "http://example.org/{id}"
time = "t"
properties = { ":age" = { field = "age", datatype = "xsd:integer" } }
"""
QUERY = """
SELECT ?e (decay(?a) + :ofOne(?a, 100) AS ?score)
FROM NAMED WINDOW :w ON :s [RANGE 100s]
WHERE { WINDOW :w { ?e :age ?a } FILTER(decay(?a) < 0.99) }
ORDER BY DESC(?score) LIMIT 3
"""
AGES = (0, 1, 2, 3, 50)
WINDOW_BY_WINDOW = QUERY.replace("SELECT ?e", "SELECT ?e (UUID() AS ?id)")


def catalog(folder: Path, text: str = CATALOG) -> Catalog:
    events = [{"id": f"e{at}", "t": 1_000 * at + 1, "age": age} for at, age in enumerate(AGES)]
    (folder / "events").write_text("".join(json.dumps(each) + "\n" for each in events))
    return Catalog.parse(text, file=folder / "catalog.toml", variables={})


def scores(engine: Engine, query: str) -> list[tuple[str, float]]:
    with engine:
        (answer,) = engine.register(query)
    assert answer.status.value == "exact"
    found = [(str(row.bindings["e"])[-2:], row.score) for row in answer.rows]
    return [(name, round(score, 9)) for name, score in found if score is not None]


def expected() -> list[tuple[str, float]]:
    import numpy as np

    # A two is an error of :ofOne, and decay(0) is no less than 0.99.
    of = {f"e{at}": float(decay(np.array(age))) + age / 100 for at, age in enumerate(AGES)}
    kept = [(name, round(score, 9)) for name, score in of.items() if name not in ("e0", "e2")]
    return sorted(kept, key=lambda each: -each[1])


@pytest.mark.parametrize("query", [QUERY, WINDOW_BY_WINDOW], ids=["incremental", "whole windows"])
def test_queries_call_them_on_both_roads(tmp_path: Path, query: str) -> None:
    analysis = check_query(query, catalog=catalog(tmp_path))
    assert (analysis.reason is None) == (query is QUERY)
    assert scores(Engine(catalog(tmp_path), runtime="local", until_end=True), query) == expected()


def test_executors_import_them(tmp_path: Path, spark: SparkSession) -> None:
    text = CATALOG.replace('"events" }', '"events" }\nsmall_batches = "executors"')
    engine = Engine(catalog(tmp_path, text), spark=spark, until_end=True)
    assert scores(engine, QUERY) == expected()


def test_nothing_is_imported_before_a_query_calls_it(tmp_path: Path) -> None:
    text = CATALOG.replace("tests.support.declared_functions:of_one", "absent_here:of_one")
    found = catalog(tmp_path, text)
    cloudpickle.dumps(found.functions)
    with Engine(found, runtime="local", until_end=True) as engine:
        engine.register(QUERY.replace("+ :ofOne(?a, 100)", ""))
        assert "absent_here" not in sys.modules
        with pytest.raises(QueryError, match="there is no module absent_here") as caught:
            engine.register(QUERY)
    (problem,) = caught.value.diagnostics
    assert (problem.line, problem.code) == (2, "function")


def test_a_wrong_direction_is_found(tmp_path: Path) -> None:
    text = CATALOG.replace("directions = [-1]", "directions = [1]")
    with (
        Engine(catalog(tmp_path, text), runtime="local", until_end=True) as engine,
        pytest.raises(QueryError, match=r"decay falls in its argument 1.*declared as 1"),
    ):
        engine.register(QUERY)


@pytest.mark.parametrize(
    ("written", "wrong", "said"),
    [
        ('call = "tests.support.declared_functions:decay"', 'call = "decay"', "does not name"),
        ("directions = [-1]", "directions = [2]", "directions are 1, -1 or 0"),
        ("directions = [-1]", "", '"directions" must be'),
        ("range = [0, 1]", "range = [1, 0]", "the least value and the greatest"),
        ("range = [0, 1]", "rang = [0, 1]", 'did you mean "range"'),
        ("[functions.decay]", "[functions.abs]", "abs has a meaning of its own"),
        ("[functions.decay]", '[functions."de cay"]', "neither a name nor an absolute IRI"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, written: str, wrong: str, said: str) -> None:
    with pytest.raises(CatalogError, match=said):
        catalog(tmp_path, CATALOG.replace(written, wrong))
