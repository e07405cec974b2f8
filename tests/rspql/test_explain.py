"""Queries and what is explained of them: pairs of files in ``fixtures/explain``.

Write the expected texts anew with ``UPDATE_FIXTURES=1 ./run test tests/rspql/test_explain.py``,
then read them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from acquatop.catalog.catalog import Catalog
from acquatop.plan.check import check_query, replicas_of, sent_of, structure_of
from rspql.explain import explain, render
from tests.support.worlds import catalog_text

FOLDER = Path(__file__).parent.parent / "fixtures" / "explain"
QUERIES = sorted(FOLDER.glob("*.rspql"))
PLANNED = sorted((FOLDER / "without_catalog").glob("*.rspql"))
CATALOG = Catalog.parse(
    catalog_text(n=7, items=5, requests=2), file=Path("catalog.toml"), variables={}
)


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_queries_are_explained(file: Path) -> None:
    analysis = check_query(file.read_text("utf-8"), catalog=CATALOG, file=file.name)
    assert analysis.plan is not None, analysis.diagnostics
    remotes, structure = replicas_of(CATALOG), structure_of(analysis, CATALOG)
    document = explain(analysis, remotes, structure, sent_of(analysis, CATALOG))
    check(file, document)


@pytest.mark.parametrize("file", PLANNED, ids=lambda file: file.stem)
def test_plans_are_explained_without_a_catalog(file: Path) -> None:
    analysis = check_query(file.read_text("utf-8"), file=file.name)
    assert analysis.plan is not None, analysis.diagnostics
    check(file, explain(analysis))


def check(file: Path, document: dict[str, Any]) -> None:
    expected = file.with_suffix(".expected")
    if os.environ.get("UPDATE_FIXTURES"):
        expected.write_text(render(document), "utf-8")
    assert render(document) == expected.read_text("utf-8")
    assert json.loads(json.dumps(document)) == document
    assert document["strategy"] == (
        "incremental" if "incremental" in file.stem else "window by window"
    )


def test_there_are_fixtures() -> None:
    assert len(QUERIES) > 8
    assert len(PLANNED) > 3
