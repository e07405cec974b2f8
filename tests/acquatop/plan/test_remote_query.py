"""SERVICE patterns that services of records can answer, and what is said of the others."""

from __future__ import annotations

import pytest

from acquatop.plan.remote_query import RemoteQuery, star_of
from replica.remotes.records import (
    Field,
    KeyTemplate,
    MappedPattern,
    RecordMapping,
    RecordReader,
    Star,
)
from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.parser import parse
from tests.support.worlds import integer

PROPERTIES = {"urn:followers": 1, "urn:name": 2}


def group(text: str) -> ast.Group:
    where = parse(f"PREFIX : <urn:> ASK {{ {text} }}").where
    assert where is not None
    return where


def test_a_star_around_the_key_becomes_columns_and_constants() -> None:
    star = star_of(group("?u :followers ?f ; :name 7"), "u", PROPERTIES)
    assert star == Star("u", {"f": "urn:followers"}, {"urn:name": integer(7)})


@pytest.mark.parametrize(
    ("pattern", "key", "said"),
    [
        ("?u :followers ?f", None, "must share a variable"),
        ("?x :followers ?f", "u", "around ?u, by which it is asked, and not ?x"),
        ("?u :folowers ?f", "u", "has no property <urn:folowers>"),
        ("?u ?p ?f", "u", "and nothing else"),
        ("?u :followers/:name ?f", "u", "and nothing else"),
        ("?u :followers ?f FILTER(?f > 1)", "u", "and nothing else"),
        ("?u :followers ?f ; :name ?f", "u", "and nothing else"),
        ("?u :followers ?f OPTIONAL { ?u :name ?n }", "u", "and nothing else"),
    ],
)
def test_what_is_no_such_star_is_refused_with_its_place(
    pattern: str, key: str | None, said: str
) -> None:
    found = star_of(group(pattern), key, PROPERTIES)
    assert isinstance(found, Diagnostic)
    assert said in found.message
    assert found.span is not None


def test_a_property_that_is_nearly_right_is_suggested() -> None:
    found = star_of(group("?u :folowers ?f"), "u", PROPERTIES)
    assert isinstance(found, Diagnostic)
    assert found.hint == "did you mean <urn:followers>?"


def test_what_is_asked_has_a_text() -> None:
    assert RemoteQuery(group("?u :name ?n"), ("u", "n"), "u").text == "?u <urn:name> ?n ."


def test_a_record_can_be_a_solution_of_a_whole_pattern() -> None:
    asked = group("?i :on ?m OPTIONAL { ?i :days ?d }")
    question = RemoteQuery(asked, ("m", "i", "d"), "m")
    fields = {"i": Field("i", "iri"), "d": Field("d", "http://www.w3.org/2001/XMLSchema#integer")}
    patterns = {question.text: MappedPattern("m", fields)}
    mapping = RecordMapping(KeyTemplate.parse("urn:m:{m}"), {}, patterns=patterns)
    star = question.star(mapping)
    assert star == Star("m", {}, fields=fields)
    reader = RecordReader(mapping, star)
    (solution,) = reader.read({"m": 1, "i": "urn:i", "d": 3}).solutions
    assert solution == {"m": "<urn:m:1>", "i": "<urn:i>", "d": integer(3)}
    assert reader.read({"m": 1, "i": "urn:i"}).solutions == [{"m": "<urn:m:1>", "i": "<urn:i>"}]
    assert reader.read({"m": 1}).solutions == ()
    assert reader.read({"m": 1, "i": "urn:i", "d": "x"}).is_bad
    with pytest.raises(ValueError, match="no property"):
        RemoteQuery(asked, ("m", "i", "d"), "i").star(mapping)
