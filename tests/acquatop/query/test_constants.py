"""Constants as objects of a pattern: the same matches incrementally and over whole windows."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop import Engine
from acquatop.catalog.catalog import Catalog
from acquatop.ingest.constants import as_kept, same_as
from acquatop.plan.bind import bind_query
from acquatop.plan.bound import BoundQuery
from rspql import ast

CATALOG = """
[prefixes]
"" = "http://example.org/"
xsd = "http://www.w3.org/2001/XMLSchema#"
[streams.":s"]
connector = "lines"
options = {{ path = "events" }}
arrivals = "{arrivals}"
start_ms = 0
[streams.":s".mapping]
subject = "http://example.org/e/{{id}}"
time = "t"
[streams.":s".mapping.properties]
":m" = {{ field = "m", datatype = "xsd:integer" }}
":double" = {{ field = "double", datatype = "xsd:double" }}
":decimal" = {{ field = "decimal", datatype = "xsd:decimal" }}
":open" = {{ field = "open", datatype = "xsd:boolean" }}
":at" = {{ field = "at", datatype = "xsd:dateTime" }}
":text" = {{ field = "text" }}
"""
QUERY = """SELECT ?m{more} FROM NAMED WINDOW :w ON :s [RANGE 10ms]
WHERE {{ WINDOW :w {{ ?e :m ?m ; {pattern} }} }} ORDER BY ?m LIMIT 5"""
RECORDS = [
    {"m": 5, "double": 1.5, "decimal": "1.50", "open": True, "at": "2024-01-01T00:00:00Z"},
    {"m": 6, "double": 15.0, "decimal": "1.5", "open": False, "at": "2024-01-01T00:00:00.0Z"},
    {"m": 7, "double": 1e21, "decimal": "2", "open": True, "at": "2024-01-02T00:00:00Z"},
]
PATTERNS = {
    ":m 5": [5],
    ":m 05": [5],
    ":m 5.0": [],
    ":double 1.5e0": [5],
    ":double 0.15E1": [5],
    ":double 15e0": [6],
    ":double 1.0E21": [7],
    ":double 1.5": [],
    ":decimal 1.5": [5, 6],
    ":decimal 1.500": [5, 6],
    ":decimal 2.0": [7],
    ":open true": [5, 7],
    ':open "1"^^xsd:boolean': [5, 7],
    ':at "2024-01-01T00:00:00.000Z"^^xsd:dateTime': [5, 6],
    ':text "1.5e0"': [5, 6, 7],
    ':text "1.5E0"': [],
    ":double [] ; :text 1": [],
}


@pytest.mark.parametrize("arrivals", ["all", "distinct"])
def test_both_roads_match_by_value(tmp_path: Path, arrivals: str) -> None:
    records = [
        {"id": f"e{at}", "t": at, "text": "1.5e0", **each} for at, each in enumerate(RECORDS, 1)
    ]
    (tmp_path / "events").write_text("".join(f"{json.dumps(each)}\n" for each in records))
    text = CATALOG.format(arrivals=arrivals)
    catalog = Catalog.parse(text, file=tmp_path / "catalog.toml", variables={})
    for pattern, expected in PATTERNS.items():
        for more in ("", " (UUID() AS ?id)"):
            query = QUERY.format(pattern=pattern, more=more)
            assert isinstance(bind_query(query, catalog), BoundQuery) == (not more)
            with Engine(catalog, runtime="local", until_end=True) as engine:
                (answer,) = engine.register(query, name="q")
            found = [row.bindings["m"].value for row in answer.rows]
            assert found == expected, (pattern, more)


NUMBERS = st.floats(width=64) | st.sampled_from([1.5, 15.0, 1e21, 1e-7, -0.0])


@settings(max_examples=80)
@given(st.lists(NUMBERS, min_size=1, max_size=6), st.sampled_from(["{!r}", "{:.17e}", "{:.20E}"]))
def test_doubles_match_however_they_are_written(numbers: list[float], form: str) -> None:
    written = form.format(numbers[0]).replace("inf", "INF").replace("nan", "NaN")
    constant = ast.Literal(written, ast.XSD + "double")
    same = same_as(constant, pa.array(numbers), ast.XSD + "double").to_pylist()
    texts = [as_kept(f'"{each!r}"^^<{ast.XSD}double>'.replace("inf", "INF").replace("nan", "NaN"))
             for each in numbers]  # fmt: skip
    assert same == [each == texts[0] for each in texts]
