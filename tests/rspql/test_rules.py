"""The standard's rules, each with queries that keep it and queries that break it."""

from __future__ import annotations

import pytest

from rspql import ast
from rspql.diagnostics import QueryError
from rspql.iris import resolve
from rspql.parser import parse
from tests.support.rspql.rules import BAD, GOOD


@pytest.mark.parametrize("text", GOOD)
def test_what_the_standard_allows_is_accepted(text: str) -> None:
    assert isinstance(parse(text), ast.Query)


@pytest.mark.parametrize("text", BAD)
def test_what_the_standard_forbids_is_rejected(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse(text)
    assert all(found.span is not None and found.is_error for found in caught.value.diagnostics)


def test_collections_and_brackets_are_written_out() -> None:
    first, rest, nil = (f"<{ast.RDF}{name}>" for name in ("first", "rest", "nil"))
    spelt = f"""SELECT * {{
        ?s <p> _:anon2 .
        _:anon2 {first} 1 ; {rest} _:anon3 .
        _:anon3 {first} _:anon1 . _:anon1 <q> 2 . _:anon3 {rest} {nil}
    }}"""
    assert parse("SELECT * { ?s <p> (1 [ <q> 2 ]) }") == parse(spelt)


def test_labels_made_up_never_meet_those_in_the_text() -> None:
    query = parse("SELECT * { _:anon1 <p> [] }")
    labels = {node.label for node in ast.walk(query) if isinstance(node, ast.BlankNode)}
    assert len(labels) == 2


def test_bases_follow_each_other() -> None:
    query = parse("BASE <http://a/b/> BASE <c/> PREFIX : <d#> PREFIX : <e#> SELECT * { <> <f> :g }")
    iris = [node.value for node in ast.walk(query) if isinstance(node, ast.Iri)]
    assert iris == ["http://a/b/c/", "http://a/b/c/f", "http://a/b/c/e#g"]


def test_escapes_in_names_and_codepoints_anywhere() -> None:
    query = parse("PREFIX : <urn:> \\u0053ELECT * { :a\\-b\\.c%20d <urn:\\u00e9> '\\\\u0041' }")
    found = [node.value for node in ast.walk(query) if isinstance(node, ast.Iri)]
    assert found == ["urn:a-b.c%20d", "urn:\u00e9"]
    assert [node.lexical for node in ast.walk(query) if isinstance(node, ast.Literal)] == [
        "\\u0041"
    ]


@pytest.mark.parametrize(
    ("reference", "resolved"),
    [
        (".", "http://a/b/c/"),
        ("./", "http://a/b/c/"),
        ("..", "http://a/b/"),
        ("../../../g", "http://a/g"),
        ("/./g", "http://a/g"),
        ("/../g", "http://a/g"),
        ("g.", "http://a/b/c/g."),
        ("..g", "http://a/b/c/..g"),
        ("./g/.", "http://a/b/c/g/"),
        ("g/./h", "http://a/b/c/g/h"),
        ("g;x=1/../y", "http://a/b/c/y"),
        ("g?y/../x", "http://a/b/c/g?y/../x"),
        ("g#s/./x", "http://a/b/c/g#s/./x"),
        ("urn:a:b", "urn:a:b"),
        ("eXAMPLE://a/./b/../c/%63", "eXAMPLE://a/./b/../c/%63"),
    ],
)
def test_references_are_resolved_as_rfc_3986_says(reference: str, resolved: str) -> None:
    assert resolve("http://a/b/c/d;p?q", reference) == resolved
