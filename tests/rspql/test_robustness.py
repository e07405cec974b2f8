"""Robustness of the parser: any text gives a tree or a diagnostic, never a crash or a hang."""

from __future__ import annotations

import random
import string
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from acquatop.plan.check import check_query, check_syntax
from rspql.compiler import Analysis, analyse
from rspql.limits import DEPTH, LENGTH
from tests.support.rspql.rules import BAD, GOOD

FIXTURES = Path(__file__).parent.parent / "fixtures" / "diagnostics"
TEXTS = [*GOOD, *BAD, *(file.read_text("utf-8") for file in sorted(FIXTURES.glob("*.rspql")))]
PIECES = [
    *"{}()[]<>.,;:?$*/|^!&=+-#'\"\\@_ \n\r\t",
    *(
        "SELECT",
        "WHERE",
        "WINDOW",
        "SERVICE",
        "FILTER",
        "OPTIONAL",
        "UNION",
        "VALUES",
        "BIND",
        "AS",
        "COUNT",
        "GROUP BY",
    ),
    *(
        "a",
        "?x",
        "$y",
        ":p",
        "_:b",
        "<urn:x>",
        '"',
        "'''",
        "1e",
        "9m",
        "\\u0041",
        "\\U0010ffff",
        "\ufeff",
        "\u00d7",
        "\U0001f600",
    ),
]


def said_of(text: str) -> Analysis:
    analysis = analyse(text)
    assert (analysis.plan is not None) == analysis.ok
    for found in analysis.diagnostics[:200]:
        assert found.message
        assert found.render(text, "q")
        assert found.to_json("q")
        assert found.span is None or 0 <= found.span.start <= found.span.end <= len(text) + 1
    check_syntax(text)
    return analysis


@given(st.text(max_size=60))
@settings(max_examples=200, deadline=None)
def test_any_text(text: str) -> None:
    said_of(text)


@given(st.lists(st.sampled_from(PIECES), max_size=40).map(" ".join))
@settings(max_examples=300, deadline=None)
def test_any_row_of_tokens(text: str) -> None:
    said_of(text)


@given(st.sampled_from(TEXTS), st.integers(0, 2**32))
@settings(max_examples=500, deadline=None)
def test_real_queries_with_pieces_lost_doubled_swapped_and_put_in(text: str, seed: int) -> None:
    said_of(mutated(text, random.Random(seed)))


def mutated(text: str, chance: random.Random) -> str:
    for _ in range(chance.randint(1, 6)):
        at, until = sorted(chance.randint(0, len(text)) for _ in range(2))
        until = min(until, at + 30)
        kind = chance.randint(0, 4)
        middle = {
            0: "",
            1: text[at:until] * 2,
            2: chance.choice(PIECES),
            3: "".join(chance.sample(text[at:until], until - at)),
            4: chance.choice(string.printable),
        }[kind]
        text = text[:at] + middle + text[until:]
    return text


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ((" + "(" * 8_000 + "1" + ")" * 8_000 + ") AS ?x) {}",
        "SELECT * " + "{" * 8_000 + "}" * 8_000,
        "SELECT * " + "{ OPTIONAL " * 4_000 + "{}" + "}" * 4_000,
        "SELECT * { FILTER(" + "||".join(["?a"] * 8_000) + ") }",
        "SELECT * { FILTER(" + "ABS(" * 4_000 + "1" + ")" * 4_000 + ") }",
        "SELECT * { ?s " + "(" * 4_000 + "<p>" + ")*" * 4_000 + " ?o }",
        "SELECT * { ?s ?p " + "[ ?p " * 2_000 + "1" + "]" * 2_000 + "}",
        "SELECT * { ?s ?p " + "(" * 4_000,
        "SELECT * { ?s ?p '''" + "a" * 400_000,
        'SELECT * { ?s ?p "' + "\\\\" * 200_000,
        "SELECT * { ?s ?p a" + "." * 400_000,
        "SELECT * { ?s <" + "a" * 400_000,
        "\\" * 400_000,
        "SELECT * { VALUES ?x {" + " 1" * 4_000 + "} }",
        "ASK { _:anon" + "_" * 100_000 + " <urn:p> [] }",
        "SELECT " + " ".join(f"?w{at}" for at in range(3_000)) + " { }",
        "ASK { ?s ?p '" + "\\uD800" * 4_000 + "' }",
        "ASK "
        + " ".join(f"FROM NAMED WINDOW <urn:w{at}> ON <urn:s> [RANGE 1s]" for at in range(300))
        + "{"
        + " ".join(f"WINDOW <urn:v{at}> {{ }}" for at in range(300))
        + "}",
        "SELECT * { } LIMIT " + "9" * 5_000,
    ],
    ids=range(19),
)
def test_long_and_deep_texts_are_answered(text: str) -> None:
    said_of(text)


def test_what_is_too_deep_or_too_long_is_said() -> None:
    deep = "SELECT * " + "{" * (DEPTH.most + 1) + "}" * (DEPTH.most + 1)
    assert [each.code for each in analyse(deep).diagnostics] == ["nesting"]
    assert check_syntax("SELECT * " + "{" * (DEPTH.most - 2) + "}" * (DEPTH.most - 2)).ok
    assert [each.code for each in analyse("#" * (LENGTH.most + 1)).diagnostics] == ["too-long"]


def test_what_is_as_deep_as_allowed_goes_through_everything() -> None:
    depth = DEPTH.most - 12
    deep = f"""PREFIX : <urn:> SELECT ?u ({"ABS(" * depth}?m + ?f{")" * depth} AS ?score)
        FROM NAMED WINDOW :w ON :s [RANGE 9m]
        {{ WINDOW :w {{ ?u :m ?m }} SERVICE :p {{ ?u :f ?f }} }}
        ORDER BY DESC(?score) LIMIT 1"""
    assert check_query(deep).plan is not None
    groups = f"""PREFIX : <urn:> ASK FROM NAMED WINDOW :w ON :s [RANGE 9m]
        {"{ OPTIONAL " * (depth // 2)} {{ WINDOW :w {{ ?u :m ?m }} }} {"}" * (depth // 2)}"""
    assert check_query(groups).plan is not None
