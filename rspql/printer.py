"""Syntax trees back to text that any SPARQL 1.1 processor reads."""

from __future__ import annotations

from collections.abc import Iterable

from rspql import ast

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})


def term_text(term: ast.Term) -> str:
    """Return a term as SPARQL writes it, without prefixes; IRIs and literals are N-Triples too.

    >>> term_text(ast.Literal("3", ast.XSD + "integer"))
    '"3"^^<http://www.w3.org/2001/XMLSchema#integer>'
    """
    match term:
        case ast.Variable(name):
            return f"?{name}"
        case ast.Iri(value):
            return f"<{value}>"
        case ast.Literal(lexical, datatype, language):
            text = f'"{lexical.translate(_ESCAPES)}"'
            if language:
                return f"{text}@{language}"
            return text if datatype == ast.XSD + "string" else f"{text}^^<{datatype}>"


def pattern_text(pattern: Iterable[ast.TriplePattern]) -> str:
    """Return triple patterns as the inside of a group graph pattern."""
    return " ".join(
        f"{term_text(triple.subject)} {term_text(triple.predicate)} {term_text(triple.object)} ." for triple in pattern
    )
