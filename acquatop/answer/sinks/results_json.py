"""Sink of answers in the SPARQL 1.1 Query Results JSON Format."""

from __future__ import annotations

from typing import Any

from acquatop.answer.answer import Answer, term_json
from acquatop.answer.sinks.files import FilePlace
from acquatop.answer.sinks.json_line import json_line
from acquatop.answer.sinks.window_files import WindowFiles, columns_of, require_form


def results_json_sink(folder: FilePlace) -> WindowFiles:
    """Return a sink of ``.srj`` files."""
    return WindowFiles(folder, ".srj", encode)


def encode(answer: Answer) -> bytes:
    """Return an answer's document: a SELECT's rows in their order, or an ASK's boolean."""
    require_form(answer, ("select", "ask"), "SPARQL Results JSON", "nt, ttl, parquet or ndjson")
    if answer.form == "ask":
        return json_line({"head": {}, "boolean": answer.boolean})
    bindings: list[dict[str, Any]] = [
        {name: term_json(term) for name, term in row.bindings.items()} for row in answer.rows
    ]
    return json_line({"head": {"vars": columns_of(answer)}, "results": {"bindings": bindings}})
