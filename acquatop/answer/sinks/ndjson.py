"""Sink of answers as lines of JSON: one growing file per query."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from acquatop.answer.answer import Answer
from acquatop.answer.sinks.contract import Sink
from acquatop.answer.sinks.durable import make_folder
from acquatop.answer.sinks.files import FilePlace
from acquatop.answer.sinks.growing import GrowingFile, Key
from acquatop.answer.sinks.json_line import json_line
from acquatop.answer.sinks.naming import safe_name
from acquatop.answer.sinks.window_files import WindowFiles
from acquatop.errors import UserError
from acquatop.instants import instant_ms

SUFFIXES = (".ndjson", ".jsonl")
"""Suffixes of a path that is a file, for one query; any other path is a folder."""


def ndjson_sink(place: FilePlace, *, canonical: bool = False) -> Sink:
    """Return the sink of a path; in an object store, where nothing grows, a file per answer."""
    if isinstance(place, Path):
        return NdjsonSink(place, canonical=canonical)
    return WindowFiles(place, SUFFIXES[0], lambda answer: _line(answer, canonical=canonical))


class NdjsonSink:
    """Sink that writes a file of lines of JSON per query, one line per answer, in window order.

    ``path`` is a folder, in which every query has a file, or a file for one query only.
    ``canonical`` leaves out fields that do not depend on the data, such as latencies, so that the
    bytes of two runs can be compared. A repeated answer overwrites its line and those after it. One
    sync per query and call.
    """

    def __init__(self, path: Path, *, canonical: bool = False) -> None:
        self._path = path
        self._canonical = canonical
        self._files: dict[str, GrowingFile] = {}
        make_folder(path.parent if self._is_file else path)

    def write(self, answers: Sequence[Answer]) -> None:
        """Write each query's answers to the end of its file, or from the first repeated one on."""
        lines: defaultdict[str, dict[Key, bytes]] = defaultdict(dict)
        for answer in answers:
            line = _line(answer, canonical=self._canonical)
            lines[answer.query][answer.closes_ms, answer.window] = line
        for query, its_lines in lines.items():
            self._file(query).write(its_lines)

    def close(self) -> None:
        """Do nothing: no file is held open."""

    @property
    def _is_file(self) -> bool:
        return self._path.suffix in SUFFIXES

    def _file(self, query: str) -> GrowingFile:
        if query not in self._files:
            if self._is_file and self._files:
                (other,) = self._files
                raise UserError(
                    f"{self._path} is one file, and takes the answers of one query: "
                    f"{other} or {query}\n"
                    "  hint: name a folder; every query has a file of its own in it"
                )
            path = self._path if self._is_file else self._path / f"{safe_name(query)}{SUFFIXES[0]}"
            # Beginning of an answer's line, canonical or not.
            opening = json_line({"query": query})[:-2] + b","
            self._files[query] = GrowingFile(path, opening, _key)
        return self._files[query]


def _line(answer: Answer, *, canonical: bool) -> bytes:
    return json_line(answer.canonical() if canonical else answer.to_json())


def _key(line: bytes) -> Key | None:
    """Return the close and the number of the window of a line's answer.

    None for an incomplete line.
    """
    if not line.endswith(b"}\n"):
        return None
    try:
        window = json.loads(line)["window"]
        return instant_ms(window["closes"]), int(window["index"])
    except (ValueError, LookupError, TypeError, AttributeError):
        return None
