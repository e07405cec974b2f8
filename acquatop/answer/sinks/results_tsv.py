"""Sink of answers in the SPARQL 1.1 Query Results TSV Format: terms as Turtle writes them."""

from __future__ import annotations

import re

from rdflib import BNode, Literal
from rdflib.term import Identifier

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.files import FilePlace
from acquatop.answer.sinks.window_files import WindowFiles, columns_of, require_form, utf8
from replica.terms import literal_text

_NOT_IN_IRI = re.compile(r'[\x00-\x20<>"{}|^`\\]')


def results_tsv_sink(folder: FilePlace) -> WindowFiles:
    """Return a sink of ``.tsv`` files."""
    return WindowFiles(folder, ".tsv", encode)


def encode(answer: Answer) -> bytes:
    """Return a SELECT's rows: a line with the variables, then one per row.

    Unbound ones are empty.
    """
    require_form(answer, ("select",), "TSV", "srj, parquet or ndjson")
    names = columns_of(answer)
    lines = ["\t".join(f"?{name}" for name in names)]
    lines += [
        "\t".join(turtle_text(row.bindings[name]) if name in row.bindings else "" for name in names)
        for row in answer.rows
    ]
    return utf8("".join(f"{line}\n" for line in lines))


def turtle_text(term: Identifier) -> str:
    r"""Return a term in Turtle's syntax, without abbreviations, tabs or line ends.

    >>> print(turtle_text(Literal("a\tb", lang="en")), turtle_text(Literal(7)))
    "a\tb"@en "7"^^<http://www.w3.org/2001/XMLSchema#integer>
    """
    if isinstance(term, Literal):
        datatype = None if term.datatype is None else _iri(term.datatype)
        return literal_text(str(term), datatype, term.language).replace("\t", "\\t")
    return f"_:{term}" if isinstance(term, BNode) else f"<{_iri(term)}>"


def _iri(iri: str) -> str:
    # Streams may hold invalid IRIs; these must not break a line.
    return _NOT_IN_IRI.sub(lambda found: f"\\u{ord(found[0]):04X}", str(iri))
