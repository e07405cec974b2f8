"""Queries with mistakes, and what is said of them: pairs of files in ``fixtures/diagnostics``.

Write the expected texts anew with ``UPDATE_FIXTURES=1 ./run test tests/rspql/test_diagnostics.py``,
then read them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from acquatop.catalog.catalog import Catalog
from acquatop.plan.check import check_query
from rspql.diagnostics import Diagnostic
from tests.support.worlds import catalog_text

FOLDER = Path(__file__).parent.parent / "fixtures" / "diagnostics"
QUERIES = sorted(FOLDER.glob("*.rspql"))
CATALOG = Catalog.parse(catalog_text(arrivals="all"), file=Path("catalog.toml"), variables={})


@pytest.mark.parametrize("file", QUERIES, ids=lambda file: file.stem)
def test_mistakes_are_named_where_they_stand(file: Path) -> None:
    text = file.read_text("utf-8")
    analysis = check_query(text, catalog=CATALOG, file=file.name)
    said = "\n".join(found.render(text, file.name) for found in analysis.diagnostics) + "\n"
    expected = file.with_suffix(".expected")
    if os.environ.get("UPDATE_FIXTURES"):
        expected.write_text(said, "utf-8")
    assert said == expected.read_text("utf-8")
    assert analysis.diagnostics
    assert all(found.code and found.message and found.span for found in analysis.diagnostics)
    assert analysis.ok == ("warning:" in said and analysis.plan is not None)


def test_there_are_fixtures() -> None:
    assert len(QUERIES) > 40
    assert {file.with_suffix("") for file in QUERIES} == {
        file.with_suffix("") for file in FOLDER.glob("*.expected")
    }


def test_a_finding_as_json() -> None:
    (found, *_) = check_query("SELECT ?x {\n ?x <p }", file="q.rspql").diagnostics
    assert json.loads(json.dumps(found.to_json("q.rspql"))) == {
        "code": "syntax",
        "severity": "error",
        "file": "q.rspql",
        "line": 2,
        "column": 5,
        "span": {"start": 16, "end": 17},
        "message": 'unexpected "<"',
        "hint": "expected '!' or '(' or '^' or 'a' or a variable or an IRI",
    }


def test_findings_count_characters_as_they_were_written() -> None:
    text = "SELECT ?\\u0061 {\r\n ?\\U00000061 <urn:p> 'x\\u00e9' . \U0001f600 }"
    (found, *_) = check_query(text).diagnostics
    assert found.span is not None
    assert (found.line, text[found.span.start]) == (2, "\U0001f600")


def test_a_long_line_is_cut_around_the_finding() -> None:
    text = "SELECT * { " + "?s ?p ?o . " * 100 + "% " + "?s ?p ?o . " * 100 + "}"
    (found, *_) = check_query(text).diagnostics
    _, excerpt, caret, *_ = found.render(text, "q").split("\n")
    assert len(excerpt) < 170
    assert excerpt[caret.index("^")] == "%"


def test_what_cannot_be_printed_does_not_reach_the_terminal() -> None:
    text = "SELECT * { \x1b[31m }"
    (found, *_) = check_query(text).diagnostics
    assert "\x1b" not in Diagnostic("x", "y", found.span).render(text, "q")
