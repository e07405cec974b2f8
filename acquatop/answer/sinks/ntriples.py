"""Sink of answers of CONSTRUCT and DESCRIBE as N-Triples."""

from __future__ import annotations

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.files import FilePlace
from acquatop.answer.sinks.window_files import WindowFiles, require_form, utf8


def ntriples_sink(folder: FilePlace) -> WindowFiles:
    """Return a sink of ``.nt`` files."""
    return WindowFiles(folder, ".nt", encode)


def encode(answer: Answer) -> bytes:
    """Return an answer's triples, sorted, a line each."""
    require_form(answer, ("construct", "describe"), "N-Triples", "srj, csv, tsv, parquet or ndjson")
    return utf8("".join(f"{triple}\n" for triple in answer.triples))
