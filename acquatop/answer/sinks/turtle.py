"""Sink of answers of CONSTRUCT and DESCRIBE as Turtle."""

from __future__ import annotations

import io

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.files import FilePlace
from acquatop.answer.sinks.window_files import WindowFiles, require_form, utf8


def turtle_sink(folder: FilePlace) -> WindowFiles:
    """Return a sink of ``.ttl`` files."""
    return WindowFiles(folder, ".ttl", encode)


def encode(answer: Answer) -> bytes:
    """Return an answer's triples as pyoxigraph writes them: grouped by subject, in sorted order."""
    from pyoxigraph import RdfFormat, parse, serialize

    require_form(answer, ("construct", "describe"), "Turtle", "srj, csv, tsv, parquet or ndjson")
    # Leniently: a triple may hold an invalid IRI, which was accepted when it came.
    triples = parse(utf8("\n".join(answer.triples)), RdfFormat.N_TRIPLES, lenient=True)
    content = io.BytesIO()
    serialize(triples, content, format=RdfFormat.TURTLE)
    return content.getvalue()
