"""Conversion of terms between N-Triples text, their transport form, and rdflib or syntax nodes."""

from __future__ import annotations

import functools
import math
import re
from decimal import Decimal

import numpy as np
from rdflib import BNode, Literal, URIRef
from rdflib.term import Identifier

from connectors.escapes import unescaped
from replica.terms import blank_label, literal_text, number_of
from rspql import ast

_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)
_XSD = "http://www.w3.org/2001/XMLSchema#"
_DOUBLE = URIRef(_XSD + "double")
_LARGEST_WHOLE = 2.0**53
"""Limit up to which every whole number is a double."""
_REMEMBERED = 1 << 14
"""Number of cached conversions: terms of one answer recur in the next and in other queries."""


@functools.lru_cache(maxsize=_REMEMBERED)
def to_rdflib(text: str) -> Identifier:
    """Return the rdflib term of an N-Triples text; literals keep their text unchanged.

    >>> to_rdflib('"03"^^<http://www.w3.org/2001/XMLSchema#integer>')
    rdflib.term.Literal('03', datatype=rdflib.term.URIRef('http://www.w3.org/2001/XMLSchema#integer'))
    """
    if text.startswith("<"):
        return iri_to_rdflib(text[1:-1])
    lexical, datatype, language = _literal_parts(text)
    return Literal(
        lexical, lang=language, datatype=URIRef(datatype) if datatype else None, normalize=False
    )


def iri_to_rdflib(iri: str) -> URIRef | BNode:
    """Return the rdflib term of an IRI: a blank node if it stands for a remote's blank node.

    >>> iri_to_rdflib("urn:a"), iri_to_rdflib("urn:acquatop:blank:00112233445566778899aabbccddeeff")
    (rdflib.term.URIRef('urn:a'), rdflib.term.BNode('r00112233445566778899aabbccddeeff'))
    """
    label = blank_label(iri)
    return URIRef(iri) if label is None else BNode(label)


def from_rdflib(term: Identifier) -> str:
    """Return the N-Triples text of an rdflib term.

    >>> from_rdflib(BNode("a")), from_rdflib(URIRef("urn:a")), from_rdflib(Literal("a", lang="en"))
    ('_:a', '<urn:a>', '"a"@en')
    """
    match term:
        case BNode():
            return f"_:{term}"
        case Literal():
            datatype = None if term.datatype is None else str(term.datatype)
            return literal_text(str(term), datatype, term.language)
        case _:
            return f"<{term}>"


def to_ast(text: str) -> ast.Iri | ast.Literal:
    """Return the syntax node of an N-Triples text.

    >>> to_ast('"3"^^<http://www.w3.org/2001/XMLSchema#integer>').lexical, to_ast("<urn:a>")
    ('3', Iri(value='urn:a'))
    """
    if text.startswith("<"):
        return ast.Iri(text[1:-1])
    lexical, datatype, language = _literal_parts(text)
    if language:
        return ast.Literal(lexical, ast.RDF + "langString", language)
    return ast.Literal(lexical, datatype or ast.XSD + "string")


def from_ast(term: ast.Iri | ast.Literal) -> str:
    """Return the N-Triples text of a constant's syntax node.

    Equal terms have equal texts, whatever their source.

    >>> from_ast(ast.Literal("3", ast.XSD + "integer")), from_ast(ast.Iri("urn:a"))
    ('"3"^^<http://www.w3.org/2001/XMLSchema#integer>', '<urn:a>')
    """
    if isinstance(term, ast.Iri):
        return f"<{term.value}>"
    return literal_text(term.lexical, term.datatype, term.language)


def _literal_parts(text: str) -> tuple[str, str | None, str | None]:
    match = _LITERAL.fullmatch(text)
    if match is None:
        raise ValueError(f"not an N-Triples term: {text}")
    return unescaped(match[1]), match[3] or None, match[2]


@functools.lru_cache(maxsize=_REMEMBERED)
def datatype_of(text: str) -> str | None:
    """Return the datatype that is written in an N-Triples text; None if there is none.

    >>> (
    ...     datatype_of('"3"^^<http://www.w3.org/2001/XMLSchema#integer>'),
    ...     datatype_of("<urn:a>"),
    ...     datatype_of('"a"'),
    ... )
    ('http://www.w3.org/2001/XMLSchema#integer', None, None)
    """
    match = _LITERAL.fullmatch(text) if text.startswith('"') else None
    return match[3] if match else None


def number_of_term(term: Identifier | None) -> float | None:
    """Return a number as a double; None for other terms.

    >>> number_of_term(Literal("0.50", datatype=URIRef(_XSD + "decimal"))), number_of_term(None)
    (0.5, None)
    """
    if not isinstance(term, Literal):
        return None
    number = number_of(from_rdflib(term))
    return None if math.isnan(number) else number


def score_literal(score: float, datatype: str | None = None) -> Literal:
    """Return a score as a literal of a numeric datatype, or as xsd:double if that cannot hold it.

    Doubles have the shortest text that is that number. Decimals have at most 15 digits, the
    precision of a double.

    >>> score_literal(0.1 + 0.2, "http://www.w3.org/2001/XMLSchema#decimal").n3()
    '"0.3"^^<http://www.w3.org/2001/XMLSchema#decimal>'
    >>> [
    ...     str(score_literal(each, "http://www.w3.org/2001/XMLSchema#integer"))
    ...     for each in (12.0, 0.5, 1e300)
    ... ]
    ['12', '0.5', '1e+300']
    """
    # Adding zero turns -0.0, the same score, into 0.0.
    return _score_literal(score + 0.0, datatype)


@functools.lru_cache(maxsize=_REMEMBERED)
def _score_literal(score: float, datatype: str | None) -> Literal:
    if datatype == _XSD + "integer" and abs(score) <= _LARGEST_WHOLE and score.is_integer():
        return Literal(str(int(score)), datatype=URIRef(datatype), normalize=False)
    if datatype == _XSD + "decimal" and abs(score) <= _LARGEST_WHOLE:
        text = format(Decimal(format(score, ".15g")), "f")
        return Literal(text, datatype=URIRef(datatype), normalize=False)
    if datatype == _XSD + "float":
        shortest = str(np.float32(score)).replace("inf", "INF")
        return Literal(shortest, datatype=URIRef(datatype), normalize=False)
    text = {float("inf"): "INF", float("-inf"): "-INF"}.get(score, repr(score))
    return Literal(text, datatype=_DOUBLE, normalize=False)
