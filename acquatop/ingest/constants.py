"""Constants of a pattern: which objects a SPARQL engine takes for the same."""

from __future__ import annotations

from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyoxigraph as ox

from acquatop.ingest.object_terms import terms_of
from acquatop.ingest.terms import from_ast, to_ast
from rspql import ast

_REMEMBERED = 1 << 14


def same_as(constant: ast.Term, values: pa.Array, datatype: str) -> pa.BooleanArray:
    """Return a mask of a property's objects that match a constant of a pattern.

    An engine keeps numbers, booleans, times and durations by value, as documentation says: 1.5E0
    matches 15e-1. A blank node matches nothing. Objects of xsd:integer, texts and IRIs cost a
    comparison, others a look at each in an engine.
    """
    if not isinstance(constant, ast.Iri | ast.Literal):
        return pa.array([False] * len(values), pa.bool_())
    terms = terms_of(values, datatype)
    written = from_ast(constant)
    kept = as_kept(written)
    are_kept = datatype == ast.XSD + "integer" or _is_plain(constant)
    if are_kept:
        return pc.equal(terms, kept)
    same = [None if each is None else as_kept(each) == kept for each in terms.to_pylist()]
    return pa.array(same, pa.bool_())


def _is_plain(constant: ast.Iri | ast.Literal) -> bool:
    """Return True if a constant is one text only."""
    return (
        isinstance(constant, ast.Iri)
        or constant.language is not None
        or constant.datatype == ast.XSD + "string"
    )


@lru_cache(maxsize=_REMEMBERED)
def as_kept(text: str) -> str:
    """Return the N-Triples text by which a SPARQL engine keeps a term.

    >>> as_kept('"01"^^<http://www.w3.org/2001/XMLSchema#int>')
    '"1"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    term = to_ast(text)
    if isinstance(term, ast.Iri) or _is_plain(term):
        return text
    store = ox.Store()
    literal = ox.Literal(term.lexical, datatype=ox.NamedNode(term.datatype))
    node = ox.NamedNode("urn:acquatop:kept")
    store.add(ox.Quad(node, node, literal, ox.DefaultGraph()))
    (quad,) = store
    return str(quad.object)
