"""Sink of answers in the SPARQL 1.1 Query Results CSV Format, without datatypes and languages."""

from __future__ import annotations

import io

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.files import FilePlace
from acquatop.answer.sinks.window_files import WindowFiles, columns_of, require_form, utf8


def results_csv_sink(folder: FilePlace) -> WindowFiles:
    """Return a sink of ``.csv`` files."""
    return WindowFiles(folder, ".csv", encode)


def encode(answer: Answer) -> bytes:
    """Return a SELECT's rows as rdflib writes them."""
    from rdflib import Variable
    from rdflib.plugins.sparql.results.csvresults import CSVResultSerializer
    from rdflib.query import Result

    require_form(answer, ("select",), "CSV", "srj, parquet or ndjson")
    result = Result("SELECT")
    result.vars = [Variable(name) for name in columns_of(answer)]
    result.bindings = [
        {Variable(name): term for name, term in row.bindings.items()} for row in answer.rows
    ]
    text = io.StringIO(newline="")
    CSVResultSerializer(result).serialize(text)  # type: ignore[arg-type]  # it asks for less than it says
    return utf8(text.getvalue())
