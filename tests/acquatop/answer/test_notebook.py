"""Answers in notebooks: tables in HTML, data frames, and short representations."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from xml.etree import ElementTree

import polars
import pyarrow as pa
import pytest
from rdflib import XSD, Literal, URIRef
from rdflib.term import Identifier

import acquatop
from acquatop import Answer, Status, to_arrow, to_pandas, to_polars
from acquatop.answer.answer import Row
from acquatop.answer.estimate import Estimate
from acquatop.answer.notebook import html_of
from tests.support.empty_answer import NOTHING

ANN = URIRef("http://example.org/user/ann")
NASTY = Literal("<script>alert(1)</script>")


def shown(*bindings: dict[str, Identifier], scores: bool = True) -> Answer:
    rows = tuple(
        Row(at, each, at / 2 if scores else None, None, None) for at, each in enumerate(bindings, 1)
    )
    return replace(NOTHING, closes_ms=3000, rows=rows, variables=("user", "n"), status=Status.EXACT)


def test_columns_have_the_types_of_their_values() -> None:
    noon = Literal("2026-01-31T12:00:00Z", datatype=XSD.dateTime)
    row = {"user": ANN, "n": Literal(7), "at": noon, "half": Literal("0.5", datatype=XSD.decimal)}
    table = to_arrow([shown(row, {"user": ANN, "n": Literal(8), "rank": Literal(True)})])
    types = {name: table.schema.field(name).type for name in ("user", "n", "half", "rank_")}
    assert types == {
        "user": pa.string(),
        "n": pa.int64(),
        "half": pa.float64(),
        "rank_": pa.bool_(),
    }
    assert table.column("at").to_pylist() == [datetime(2026, 1, 31, 12, tzinfo=UTC), None]
    assert table.column("rank").to_pylist() == [1, 2]
    assert table.column("closes").to_pylist() == [datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)] * 2


def test_values_of_several_types_and_beyond_64_bits_are_text() -> None:
    mixed = to_arrow([shown({"n": Literal(7)}, {"n": Literal("x")})])
    assert mixed.column("n").to_pylist() == ["7", "x"]
    large = to_arrow([shown({"n": Literal(10**30)})])
    assert large.column("n").to_pylist() == [str(10**30)]


def test_many_answers_are_one_frame() -> None:
    answers = [shown({"user": ANN, "n": Literal(at)}) for at in range(3)]
    frame = to_pandas(iter(answers))
    assert frame["n"].tolist() == [0, 1, 2]
    assert polars.DataFrame(to_polars(answers))["n"].to_list() == [0, 1, 2]
    assert answers[0].to_pandas()["n"].tolist() == [0]
    assert answers[0].to_arrow().num_rows == len(answers[0].to_polars()) == 1
    assert to_arrow([]).num_rows == 0


def test_a_table_in_html_is_well_formed_and_runs_nothing() -> None:
    estimate = Estimate(precision=0.5, ndcg=0.75)
    answer = replace(
        shown({"user": ANN, "n": NASTY}, {"user": URIRef('urn:a"b')}),
        expected=estimate,
        status=Status.APPROXIMATE,
        reason="1 < 2 keys",
    )
    html = html_of(answer)
    assert answer._repr_html_() == html
    root = ElementTree.fromstring(f"<div>{html}</div>")
    assert [each.text for each in root.iter("th")] == ["rank", "?user", "?n", "score"]
    cells = [each.text for each in root.iter("td")]
    assert cells[:4] == ["1", "ann", str(NASTY), "0.5"]
    said = "".join(root.find("p").itertext())  # type: ignore[union-attr]
    assert said == "approximate: 1 < 2 keys · expected precision 0.50, nDCG 0.75"


@pytest.mark.parametrize(
    ("form", "said"), [("ask", "True"), ("construct", "<urn:a> <urn:b> <urn:c> .")]
)
def test_other_forms_are_shown_as_they_are(form: str, said: str) -> None:
    answer = replace(shown(), form=form, boolean=True, triples=("<urn:a> <urn:b> <urn:c> .",))
    root = ElementTree.fromstring(f"<div>{html_of(answer)}</div>")
    assert [each.text for each in root.iter("pre")] == [said]


def test_representations_are_short_and_the_package_lists_its_api() -> None:
    assert repr(shown({"user": ANN})).endswith("exact, 1 rows>")
    assert set(dir(acquatop)) == {*acquatop.__all__, "__version__"}
