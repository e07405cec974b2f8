"""Terms of the SPARQL engine as answers show them. Worker processes do without rdflib."""

from __future__ import annotations

from pyoxigraph import BlankNode, NamedNode
from rdflib import BNode, Literal, URIRef
from rdflib.term import Identifier

from acquatop.ingest.terms import iri_to_rdflib
from acquatop.query.sparql.terms import Term
from rspql.ast import XSD


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
            return Literal(term.value, lang=term.language, datatype=datatype, normalize=False)
