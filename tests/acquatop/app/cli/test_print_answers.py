"""Answers of every form on a terminal."""

from __future__ import annotations

import io
from dataclasses import replace

from rdflib import Literal, URIRef
from rich.console import Console

from acquatop.answer.answer import Answer, Counts, Row, Shown
from acquatop.app.cli.print_answers import render
from tests.support.empty_answer import NOTHING


def text(answer: Answer, *, named: bool = False) -> str:
    console = Console(file=io.StringIO(), width=200)
    console.print(render(answer, named=named), crop=False)
    return str(console.file.getvalue())  # type: ignore[attr-defined]


def test_columns_are_those_that_some_row_fills() -> None:
    rows = (
        Row(1, {"x": URIRef("http://example.org/ann")}, None, None, None),
        Row(2, {"x": Literal("[b]"), "y": Literal(3)}, None, None, None),
    )
    shown = text(replace(NOTHING, rows=rows))
    assert all(word in shown for word in ("?x", "?y", "ann", "[b]", "exact"))
    assert "score" not in shown
    assert "remote value" not in shown
    assert "asked for" not in shown
    scored = text(
        replace(NOTHING, rows=(replace(rows[0], score=0.5, refreshed=False, age_seconds=2.0),))
    )
    assert all(word in scored for word in ("score", "0.5000", "remote value", "2.0 s old"))


def test_long_numbers_are_short_and_small_ones_stay() -> None:
    numbers = ("0.432124981", "29075.5", "0.00012345", "1.0E-7")
    row = Row(1, {}, None, None, None)
    decimal = URIRef("http://www.w3.org/2001/XMLSchema#decimal")
    double = URIRef("http://www.w3.org/2001/XMLSchema#double")
    kinds = (decimal, decimal, double, double)
    rows = tuple(
        replace(row, bindings={"x": Literal(each, datatype=kind)})
        for each, kind in zip(numbers, kinds, strict=True)
    )
    shown = text(replace(NOTHING, rows=rows, variables=("x",)))
    for each in (" 0.4321 ", " 29075.5 ", " 0.00012345 ", " 1e-07 "):
        assert each in shown


def test_what_is_selected_has_a_column_be_it_bound_or_not() -> None:
    row = Row(1, {"x": URIRef("http://example.org/ann")}, None, None, None)
    assert "?nothing" in text(replace(NOTHING, rows=(row,), variables=("nothing", "x")))
    assert "?nothing" in text(replace(NOTHING, variables=("nothing",)))
    dated = replace(row, bindings={"when": Literal("2026-01-31")})
    assert "?when" in text(
        replace(NOTHING, rows=(dated,), variables=("when",), score_variable="when")
    )


def test_an_empty_answer_has_a_ranking_s_columns_only_if_it_is_one() -> None:
    assert "score" not in text(replace(NOTHING, variables=("x",)))
    assert "remote value" not in text(replace(NOTHING, variables=("x",)))
    ranked = text(replace(NOTHING, variables=("x", "y"), score_variable="y"))
    assert all(word in ranked for word in ("?x", "score", "remote value"))
    assert "?y" not in ranked


def test_bad_events_come_with_their_commonest_reason() -> None:
    assert "2 bad (not JSON)" in text(replace(NOTHING, counts=Counts(bad={"not JSON": 2})))
    assert "3 bad (mostly: not UTF-8)" in text(
        replace(NOTHING, counts=Counts(bad={"not JSON": 1, "not UTF-8": 2}))
    )


def test_ask_is_a_word_and_triples_are_lines_that_steer_no_terminal() -> None:
    assert "true" in text(replace(NOTHING, form="ask", boolean=True))
    assert "false" in text(replace(NOTHING, form="ask", boolean=False))
    shown = text(
        replace(
            NOTHING,
            form="construct",
            triples=("<urn:a> <urn:b> [c] .", "<urn:a> <urn:b> \x1b[31m ."),
        )
    )
    assert "<urn:a> <urn:b> [c] ." in shown
    assert "\x1b" not in shown
    long = f"<urn:{'a' * 300}> <urn:b> <urn:c> ."
    assert long in text(replace(NOTHING, form="construct", triples=(long,)))
    assert "no results" not in shown
    assert "no results" in text(replace(NOTHING, form="describe"))


def test_json_says_the_form_and_only_what_it_has() -> None:
    assert {"form", "results"} <= NOTHING.to_json().keys()
    assert not {"boolean", "triples", "windows"} & NOTHING.to_json().keys()
    asked = replace(
        NOTHING, form="ask", boolean=False, windows=(Shown("urn:w", 1, 0, 1),)
    ).to_json()
    assert asked["boolean"] is False
    assert asked["windows"][0]["closes"] == "1970-01-01T00:00:00.001Z"
    assert replace(NOTHING, form="construct").to_json()["triples"] == []


def test_where_there_are_several_queries_a_table_says_whose_it_is() -> None:
    shown = text(replace(NOTHING, query="http://example.org/[out]\x1b"), named=True)
    assert shown.startswith("http://example.org/[out]\N{REPLACEMENT CHARACTER}  window 0")
    assert text(NOTHING).startswith("window 0")
