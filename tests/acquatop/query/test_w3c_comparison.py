"""The comparison with the W3C's results sees every difference that SPARQL knows, and no other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from rdflib import BNode, Literal, URIRef
from rdflib.term import Node

from rspql import ast
from rspql.parser import parse
from tests.support.w3c.results import (
    Solutions,
    expected_in,
    solutions_differ,
    with_the_duplicates,
)

PLAIN = parse("SELECT ?x { ?x ?p ?y }")
ORDERED = parse("SELECT ?x { ?x ?p ?y } ORDER BY ?x")
BY_EXPRESSION = parse("SELECT ?x { ?x ?p ?y } ORDER BY STR(?x)")
A, B, ONE, TWO = URIRef("urn:a"), URIRef("urn:b"), Literal(1), Literal(2)
DECIMAL = Literal("1", datatype=URIRef(f"{ast.XSD}decimal"))


def of(*values: Node | None) -> Solutions:
    rows = [{} if each is None else {"x": each} for each in values]
    return Solutions(frozenset("x"), rows)


@pytest.mark.parametrize(
    ("found", "expected", "query", "difference"),
    [
        ((A, B), (B, A), PLAIN, None),
        ((A, A, B), (A, B, B), PLAIN, "other solutions"),
        ((A,), (A, A), PLAIN, "1 solutions, not 2"),
        ((ONE,), (DECIMAL,), PLAIN, "other solutions"),
        ((BNode("a"), BNode("b")), (BNode("c"), BNode("d")), PLAIN, None),
        ((BNode("a"), BNode("a")), (BNode("c"), BNode("d")), PLAIN, "other solutions"),
        ((A, B), (B, A), ORDERED, "another order"),
        ((None, BNode("a"), A, ONE), (None, BNode("b"), A, ONE), ORDERED, None),
        ((None, A, BNode("a"), ONE), (None, BNode("b"), A, ONE), ORDERED, "another order"),
        ((TWO, ONE), (ONE, TWO), ORDERED, "another order"),
        ((DECIMAL, ONE), (ONE, DECIMAL), ORDERED, None),
        ((Literal("a"), ONE), (ONE, Literal("a")), ORDERED, None),
        ((A, B), (B, A), BY_EXPRESSION, "another order"),
    ],
)
def test_solutions_are_compared(
    found: Sequence[Node | None],
    expected: Sequence[Node | None],
    query: ast.Query,
    difference: str | None,
) -> None:
    assert solutions_differ(of(*found), of(*expected), query) == difference


def test_the_variables_count() -> None:
    assert solutions_differ(Solutions(frozenset("xy"), []), of(), PLAIN) == (
        "other variables: ['x', 'y'], not ['x']"
    )


@pytest.mark.parametrize(
    ("found", "difference"),
    [((A, B), None), ((A, A, B), None), ((A,), "2 solutions, not 3"), ((B,), "1 solutions, not 3")],
)
def test_reduced_may_leave_out_duplicates_alone(
    found: Sequence[Node], difference: str | None
) -> None:
    expected = of(A, A, B)
    assert solutions_differ(with_the_duplicates(of(*found), expected), expected, PLAIN) == (
        difference
    )


def test_results_keep_the_texts_of_terms_but_those_of_numbers(tmp_path: Path) -> None:
    file = tmp_path / "result.tsv"
    date, numbers = (
        f'"2006-08-23+00:00"^^<{ast.XSD}date>',
        ("2.50", "1e2", f'"x"^^<{ast.XSD}integer>'),
    )
    file.write_text("\n".join(("?x", date, *numbers)) + "\n", "utf-8")
    found = expected_in(file, "urn:base")
    assert isinstance(found, Solutions)
    assert [str(row["x"]) for row in found.rows] == ["2006-08-23+00:00", "2.5", "100", "x"]
