"""Terms of the SPARQL engine, and their only form as text."""

from __future__ import annotations

from collections.abc import Mapping

from pyoxigraph import BlankNode, Literal, NamedNode, Triple
from rdflib import BNode, URIRef
from rdflib import Literal as RdflibLiteral
from rdflib.term import Identifier

from acquatop.ingest.terms import iri_to_rdflib
from replica.terms import literal_text
from rspql.ast import XSD

Term = NamedNode | BlankNode | Literal
Solution = Mapping[str, Term]


def text_of(term: Term | Triple) -> str:
    r"""Return a term as N-Triples text, in the only form in which texts are compared.

    The engine's own form has more escapes than it needs.

    >>> text_of(Literal("\t")) == '"\t"', str(Literal("\t")) == '"\t"'
    (True, False)
    """
    match term:
        case NamedNode():
            return f"<{term.value}>"
        case BlankNode():
            return f"_:{term.value}"
        case Triple():
            return str(term)
        case Literal():
            return literal_text(term.value, term.datatype.value, term.language)


def rdflib_of(term: Term) -> Identifier:
    """Return a term as rdflib's."""
    match term:
        case NamedNode():
            return iri_to_rdflib(term.value)
        case BlankNode():
            return BNode(term.value)
        case _:
            # A language excludes a datatype for rdflib, and a plain string has none.
            datatype = (
                None
                if term.language or term.datatype.value == XSD + "string"
                else URIRef(term.datatype.value)
            )
            return RdflibLiteral(term.value, lang=term.language, datatype=datatype, normalize=False)
