"""Terms of the SPARQL engine, and their only form as text."""

from __future__ import annotations

from collections.abc import Mapping

from pyoxigraph import BlankNode, Literal, NamedNode, Triple

from replica.terms import literal_text

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
