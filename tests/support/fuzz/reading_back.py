"""Files of answers, read back by parsers that are not the engine's."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rdflib import Graph, Literal
from rdflib.util import from_n3

from acquatop.answer.answer import Answer, term_json
from acquatop.answer.sinks.registry import PATHS

Problems = Iterable[str]
FORMS: Mapping[str, tuple[str, ...]] = {
    "ndjson": ("select", "ask", "construct"),
    "canonical": ("select", "ask", "construct"),
    "srj": ("select", "ask"),
    "csv": ("select",),
    "tsv": ("select",),
    "nt": ("construct",),
    "ttl": ("construct",),
    "parquet": ("select", "ask", "construct"),
}
"""Forms of answers that each kind of sink takes."""
assert set(FORMS) == set(PATHS), "each kind of sink is read back"


def differences(kind: str, folder: Path, answers: Sequence[Answer]) -> Problems:
    """Yield what a sink's files do not say of a query's answers."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.name[0] != ".")
    if kind in ("ndjson", "canonical"):
        lines = [line for path in paths for line in path.read_bytes().split(b"\n")[:-1]]
        documents = [json.loads(line, parse_constant=_refuse) for line in lines]
        yield from _lines(kind, documents, answers)
        return
    if len(paths) != len(answers):
        yield f"{kind}: {len(paths)} files for {len(answers)} answers"
        return
    for path, answer in zip(paths, answers, strict=True):
        if (said := _READERS[kind](path, answer)) is not None:
            yield f"{kind}: {path.name} says {said!r:.300}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


def _lines(kind: str, documents: Sequence[Any], answers: Sequence[Answer]) -> Problems:
    if len(documents) != len(answers):
        yield f"{kind}: {len(documents)} lines for {len(answers)} answers"
        return
    for document, answer in zip(documents, answers, strict=True):
        rows = [row["bindings"] for row in document["results"]]
        if rows != _rows(answer) or document.get("boolean") != answer.boolean:
            yield f"{kind}: {document!r:.300}"


def _rows(answer: Answer) -> list[dict[str, Any]]:
    return [{name: term_json(term) for name, term in row.bindings.items()} for row in answer.rows]


def _srj(path: Path, answer: Answer) -> Any:
    document = json.loads(path.read_bytes(), parse_constant=_refuse)
    if answer.form == "ask":
        return None if document["boolean"] is answer.boolean else document
    found = document["results"]["bindings"]
    return None if found == _rows(answer) else found


def _csv(path: Path, answer: Answer) -> Any:
    text = io.StringIO(path.read_bytes().decode(), newline="")
    csv.field_size_limit(1 << 30)
    header, *rows = csv.reader(text, strict=True)
    expected = [[str(row.bindings.get(name, "")) for name in header] for row in answer.rows]
    return None if rows == expected else [rows, expected]


def _tsv(path: Path, answer: Answer) -> Any:
    header, *lines = path.read_bytes().decode().split("\n")[:-1]
    names = [name.removeprefix("?") for name in header.split("\t")]
    for line, row in zip(lines, answer.rows, strict=True):
        for name, cell in zip(names, line.split("\t"), strict=True):
            term, found = row.bindings.get(name), _n3(cell) if cell else None
            if term is None or found is None:
                if term is not found:
                    return cell, term
            elif found != term and not _is_same_value(found, term):
                return cell, term
    return None if len(lines) == len(answer.rows) else lines


def _is_same_value(found: Any, term: Any) -> bool:
    """Return True for two spellings of one value: the parser spells some anew."""
    if getattr(found, "datatype", None) == getattr(term, "datatype", None) and (
        isinstance(found, Literal) and found.value is not None and found.value == term.value
    ):
        return True
    try:
        return found.datatype == term.datatype and float(found) == float(term)
    except (ValueError, AttributeError):
        return False


def _n3(text: str) -> Any:
    if not text.startswith('"'):
        return from_n3(text)
    graph = Graph().parse(data=f"<urn:s> <urn:p> {text} .", format="turtle")
    (term,) = graph.objects()
    assert isinstance(term, Literal)
    return term


def _triples(format_: str) -> Callable[[Path, Answer], Any]:
    def read(path: Path, answer: Answer) -> Any:
        # One parse is of the file, and one of the answer: terms are compared, not their spelling.
        found = Graph().parse(data=path.read_bytes(), format=format_)
        return None if len(found) == len(answer.triples) else list(found)

    return read


def _parquet(path: Path, answer: Answer) -> Any:
    # Python has no year 10000, in which the last window may close.
    rows = pq.read_table(path).drop_columns(["opens", "closes"]).to_pylist()
    if answer.form != "select":
        return None if len(rows) in (1, len(answer.triples)) else rows
    for row, shown in zip(rows, answer.rows, strict=True):
        for name, term in shown.bindings.items():
            if row[name if name in row and name != "score" else f"{name}_"] != str(term):
                return row
    return None


_READERS: Mapping[str, Callable[[Path, Answer], Any]] = {
    "srj": _srj,
    "csv": _csv,
    "tsv": _tsv,
    "nt": _triples("nt"),
    "ttl": _triples("turtle"),
    "parquet": _parquet,
}
