"""Each strategy of the five papers: a query, a line of the catalog, and what is explained.

A query's first line says where its line of the catalog stands. Write the expected texts anew with
``UPDATE_FIXTURES=1 ./run test tests/acquatop/plan/test_papers.py``, then read them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from acquatop.catalog.catalog import Catalog
from acquatop.catalog.vocabulary import TableStrategy
from acquatop.plan.check import check_query, replicas_of, sent_of, structure_of
from acquatop.topk.strategies import OWN
from rspql.explain import explain, render

FOLDER = Path(__file__).parents[2] / "fixtures" / "papers"
QUERIES = sorted(FOLDER.glob("*.rspql"))
CATALOG = """
[prefixes]
"" = "http://example.org/"
[streams.":stream"]
connector = "lines"
options = { path = "events" }
arrivals = "distinct"
{stream}
[streams.":stream".mapping]
subject = "http://example.org/post/{}"
time = "t"
[streams.":stream".mapping.properties]
":mentions" = { datatype = "xsd:integer", field = "n" }
":x" = { datatype = "xsd:double", field = "x" }
":y" = { datatype = "xsd:double", field = "y" }
[services.":people"]
endpoint = "http://127.0.0.1:9/query"
{service}
[services.":people".mapping]
key = "http://example.org/user/{id}"
properties = { ":followers" = { datatype = "xsd:integer", field = "followers" } }
[services.":people".refresh]
items = 20
{refresh}
"""


def catalog_for(text: str) -> Catalog:
    """Return the catalog with a query's own line."""
    said = re.match(r"# (\w+): (.+)\n", text)
    own = {} if said is None else {said[1]: said[2]}
    catalog = CATALOG
    for place in ("stream", "service", "refresh"):
        catalog = catalog.replace(f"{{{place}}}", own.get(place, ""))
    return Catalog.parse(catalog, file=Path("catalog.toml"), variables={})


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_the_strategy_is_named(file: Path) -> None:
    text = file.read_text("utf-8")
    catalog = catalog_for(text)
    analysis = check_query(text, catalog=catalog, file=file.name)
    assert analysis.ok, analysis.diagnostics
    structure = structure_of(analysis, catalog)
    document = explain(analysis, replicas_of(catalog), structure, sent_of(analysis, catalog))
    expected = file.with_suffix(".expected")
    if os.environ.get("UPDATE_FIXTURES"):
        expected.write_text(render(document), "utf-8")
    assert structure is not None
    assert structure["name"] == file.stem.partition("_")[2]
    assert f"structure: {structure['name']}, because" in render(document)
    assert render(document) == expected.read_text("utf-8")


def test_every_strategy_is_there() -> None:
    named = {each.stem.partition("_")[2] for each in QUERIES}
    assert named >= {*OWN, *TableStrategy}
    assert {each.stem.partition("_")[0] for each in QUERIES} == {
        "acquatop",
        "mintopk",
        "mtops",
        "sliding",
        "views",
    }
