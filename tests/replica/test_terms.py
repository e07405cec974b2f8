from __future__ import annotations

from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, RdfFormat, parse
from rdflib import Literal as RdflibLiteral
from rdflib import URIRef

from acquatop.terms import to_rdflib
from replica.terms import from_json, is_term


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]).filter(lambda c: c != "\0"), max_size=12))
def test_a_term_from_a_remote_is_valid_n_triples_and_means_the_same(value: str) -> None:
    """Whatever a remote sends, what is kept can stand in a query and is what an independent parser reads."""
    text = from_json({"type": "literal", "value": value})
    assert text is not None
    assert is_term(text)
    (quad,) = parse(f"<urn:s> <urn:p> {text} .", format=RdfFormat.N_TRIPLES)
    assert quad.object == Literal(value)
    assert to_rdflib(text) == RdflibLiteral(value)


IRI_TEXT = st.text(alphabet=st.sampled_from('ab1:/?#@%[]-._~ <>"é\x7f\u202e\ue000\U0001f600\ufffe'), max_size=12)


@settings(max_examples=1000)
@given(st.sampled_from(["urn:", "http://", "http://a.b/", "", "9:"]), IRI_TEXT | st.text(max_size=8))
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
    for iri in ("http://example.org/user/ada-lin?x=1&y=é#top", "urn:isbn:0451450523", "https://u@h.example:8080/a%20b"):
        assert from_json({"type": "uri", "value": iri}) == f"<{iri}>"


def test_what_is_not_a_term_is_refused() -> None:
    assert from_json({"type": "bnode", "value": "b0"}) is None
    assert from_json({"type": "uri", "value": "http://x> } DROP ALL #"}) is None
    assert from_json({"type": "literal", "value": "x", "xml:lang": "en } DROP"}) is None
    assert from_json({"type": "literal", "value": "x", "datatype": "a b"}) is None
    assert not is_term('"a" . <urn:b>')
    assert not is_term("?x")
