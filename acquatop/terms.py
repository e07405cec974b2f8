"""N-Triples text, the form in which terms travel, to rdflib terms, the form in which they are reported."""

from __future__ import annotations

import re

from rdflib import Literal, URIRef
from rdflib.term import Identifier

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
    match = _LITERAL.fullmatch(text)
    if match is None:
        raise ValueError(f"not an N-Triples term: {text}")
    lexical = re.sub(r"\\(.)", lambda escape: _ESCAPES[escape[1]], match[1])
    datatype = URIRef(match[3]) if match[3] else None
    return Literal(lexical, lang=match[2], datatype=datatype, normalize=False)


def score_literal(score: float) -> Literal:
    """Return a score as a literal: an xsd:double with the shortest text that is that number."""
    text = {float("inf"): "INF", float("-inf"): "-INF"}.get(score, repr(score))
    return Literal(text, datatype=_DOUBLE, normalize=False)
