from __future__ import annotations

import math

from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, RdfFormat, parse
from rdflib import Literal as RdflibLiteral
from rdflib import URIRef

from acquatop.ingest.terms import to_rdflib
from acquatop.query.sparql.terms import text_of
from replica.terms import can_be_asked, from_json, is_term, number_of
from tests.support.worlds import XSD

CONTROLS = "\0\1\t\b\f\n\r\x7f\x85\u2028'\"\\"
TEXT = st.text(
    alphabet=st.sampled_from(CONTROLS) | st.characters(exclude_categories=["Cs"]), max_size=12
)


@given(
    TEXT, st.sampled_from([None, "en", "en-GB"]), st.sampled_from([None, "urn:t", XSD + "integer"])
)
def test_a_term_has_one_text_whoever_writes_it(
    value: str, language: str | None, datatype: str | None
) -> None:
    document = {"type": "literal", "value": value}
    if language:
        literal, document = Literal(value, language=language), {**document, "xml:lang": language}
    elif datatype:
        literal, document = (
            Literal(value, datatype=NamedNode(datatype)),
            {**document, "datatype": datatype},
        )
    else:
        literal = Literal(value)
    text = from_json(document)
    assert text == text_of(literal)
    assert str(to_rdflib(text)) == str(to_rdflib(str(literal))) == value
    assert to_rdflib(text) == to_rdflib(str(literal))


def test_half_a_character_is_no_term() -> None:
    assert from_json({"type": "literal", "value": "\ud800"}) is None


def test_what_is_not_written_as_its_datatype_says_is_no_number() -> None:
    for lexical, datatype in [
        ("inf", "integer"),
        ("1e3", "decimal"),
        ("1_0", "double"),
        ("nan", "float"),
        ("١", "long"),
    ]:
        assert math.isnan(number_of(f'"{lexical}"^^<{XSD}{datatype}>'))
    numbers = [
        number_of(f'"{each}"^^<{XSD}double>') for each in ("1", "-.5e1", "+2.", "INF", "-INF")
    ]
    assert numbers == [1.0, -5.0, 2.0, math.inf, -math.inf]


@given(
    st.text(
        alphabet=st.characters(exclude_categories=["Cs"]).filter(lambda c: c != "\0"), max_size=12
    )
)
def test_a_term_from_a_remote_is_valid_n_triples_and_means_the_same(value: str) -> None:
    """A term from any remote is valid in a query, and an independent parser reads the same."""
    text = from_json({"type": "literal", "value": value})
    assert text is not None
    assert is_term(text)
    (quad,) = parse(f"<urn:s> <urn:p> {text} .", format=RdfFormat.N_TRIPLES)
    assert quad.object == Literal(value)
    assert to_rdflib(text) == RdflibLiteral(value)


IRI_TEXT = st.text(
    alphabet=st.sampled_from('ab1:/?#@%[]-._~ <>"é\x7f\u202e\ue000\U0001f600\ufffe'), max_size=12
)


@settings(max_examples=1000)
@given(
    st.sampled_from(["urn:", "http://", "http://a.b/", "", "9:"]), IRI_TEXT | st.text(max_size=8)
)
def test_an_iri_that_is_let_through_is_one_for_an_independent_parser(start: str, rest: str) -> None:
    iri = start + rest
    text = from_json({"type": "uri", "value": iri})
    if text is None:
        event("refused")
    else:
        event("let through")
        assert to_rdflib(text) == URIRef(iri)
        (quad,) = parse(f"<urn:s> <urn:p> {text} .", format=RdfFormat.N_TRIPLES)
        assert quad.object == NamedNode(iri)


def test_ordinary_iris_are_let_through() -> None:
    for iri in (
        "http://example.org/user/ada-lin?x=1&y=é#top",
        "urn:isbn:0451450523",
        "https://u@h.example:8080/a%20b",
    ):
        assert from_json({"type": "uri", "value": iri}) == f"<{iri}>"


def test_what_is_not_a_term_is_refused() -> None:
    assert from_json({"type": "bnode", "value": "b0"}) is None
    assert from_json({"type": "uri", "value": "http://x> } DROP ALL #"}) is None
    assert from_json({"type": "literal", "value": "x", "xml:lang": "en } DROP"}) is None
    assert from_json({"type": "literal", "value": "x", "datatype": "a b"}) is None
    assert not is_term('"a" . <urn:b>')
    assert not is_term("?x")


@given(
    st.lists(
        st.sampled_from(
            "en a x i abcd abcde 1999 419 gb zh min nan b 123456789 12345678 u co".split()
        ),
        min_size=1,
    )
)
def test_no_language_is_sent_that_a_server_refuses_to_read(parts: list[str]) -> None:
    tag = "-".join(parts)
    if can_be_asked(f'"v"@{tag}'):
        Literal("v", language=tag)
