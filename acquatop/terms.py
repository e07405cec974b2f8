"""N-Triples text, the form in which terms travel, to the forms in which they are reported and asked about."""

from __future__ import annotations

import re

from rdflib import Literal, URIRef
from rdflib.term import Identifier

from rspql import ast

_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)
_DOUBLE = URIRef("http://www.w3.org/2001/XMLSchema#double")
_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f", '"': '"', "'": "'", "\\": "\\"}


def to_rdflib(text: str) -> Identifier:
    """Return the rdflib term that an N-Triples text stands for; literals keep their text as it is.

    >>> to_rdflib('"03"^^<http://www.w3.org/2001/XMLSchema#integer>')
    rdflib.term.Literal('03', datatype=rdflib.term.URIRef('http://www.w3.org/2001/XMLSchema#integer'))
    """
    if text.startswith("<"):
        return URIRef(text[1:-1])
    lexical, datatype, language = _literal_parts(text)
    return Literal(lexical, lang=language, datatype=URIRef(datatype) if datatype else None, normalize=False)


def to_ast(text: str) -> ast.Iri | ast.Literal:
    """Return the node of a syntax tree that an N-Triples text stands for.

    >>> to_ast('"3"^^<http://www.w3.org/2001/XMLSchema#integer>').lexical, to_ast("<urn:a>")
    ('3', Iri(value='urn:a'))
    """
    if text.startswith("<"):
        return ast.Iri(text[1:-1])
    lexical, datatype, language = _literal_parts(text)
    if language:
        return ast.Literal(lexical, ast.RDF + "langString", language)
    return ast.Literal(lexical, datatype or ast.XSD + "string")


def _literal_parts(text: str) -> tuple[str, str | None, str | None]:
    match = _LITERAL.fullmatch(text)
    if match is None:
        raise ValueError(f"not an N-Triples term: {text}")
    return re.sub(r"\\(.)", lambda escape: _ESCAPES[escape[1]], match[1]), match[3] or None, match[2]


def score_literal(score: float) -> Literal:
    """Return a score as a literal: an xsd:double with the shortest text that is that number."""
    text = {float("inf"): "INF", float("-inf"): "-INF"}.get(score, repr(score))
    return Literal(text, datatype=_DOUBLE, normalize=False)
