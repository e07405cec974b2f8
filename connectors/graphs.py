"""Decoder of RDF documents: each message or file is a small graph with one time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyoxigraph as ox

from connectors.casts import fitted
from connectors.columns import MISFIT
from connectors.fields import NOT_UTF8
from connectors.literals import times_in, times_of
from connectors.mapping import ARRIVAL, Property, RecordColumns, Template
from connectors.ntriples import records_of
from connectors.row_origins import ARRIVED, FILE, POSITION
from connectors.statements import NOTHING, Statements

CONTENT_TYPE = "content_type"
"""Column in which a source gives the content type of a row's document."""
SIZE = "size"
"""Column in which a source gives the full length of a row's document, which may be cut."""
BLANK = "urn:acquatop:blank:"
"""Prefix of the IRIs for blank nodes, which belong to one document each."""


class Syntax(NamedTuple):
    """A syntax of RDF: its name for people, its content types and its file endings."""

    name: str
    format: ox.RdfFormat
    content_types: tuple[str, ...]
    endings: tuple[str, ...]


SYNTAXES: Mapping[str, Syntax] = {
    "turtle": Syntax(
        "Turtle", ox.RdfFormat.TURTLE, ("text/turtle", "application/x-turtle"), (".ttl",)
    ),
    "trig": Syntax("TriG", ox.RdfFormat.TRIG, ("application/trig",), (".trig",)),
    "ntriples": Syntax(
        "N-Triples", ox.RdfFormat.N_TRIPLES, ("application/n-triples", "text/plain"), (".nt",)
    ),
    "nquads": Syntax("N-Quads", ox.RdfFormat.N_QUADS, ("application/n-quads",), (".nq",)),
    "rdfxml": Syntax(
        "RDF/XML", ox.RdfFormat.RDF_XML, ("application/rdf+xml",), (".rdf", ".owl", ".xml")
    ),
    "jsonld": Syntax(
        "JSON-LD with contexts that are known here",
        ox.RdfFormat.JSON_LD,
        ("application/ld+json", "application/json"),
        (".jsonld", ".json"),
    ),
}
"""Supported syntaxes of RDF, by their names in catalogs."""
_BY_CONTENT_TYPE = {type_: key for key, each in SYNTAXES.items() for type_ in each.content_types}
_BY_ENDING = {ending: key for key, each in SYNTAXES.items() for ending in each.endings}


@dataclass(frozen=True)
class GraphMapping(RecordColumns):
    """Mapping from a document's statements to records, with the source of their time.

    A record is all that a document says of one subject. All records of a document have the
    document's time. ``time`` is the predicate whose object is the time, as an xsd:dateTime(Stamp)
    or an integer number of milliseconds since the epoch; or a template for the name of the graph
    that holds all statements; or :data:`~connectors.mapping.ARRIVAL`. A blank node becomes an IRI
    of its own. ``syntax`` is the documents' syntax; without it the content type or the file's
    ending decides. ``contexts`` are the JSON-LD contexts that documents may name, as JSON, by their
    IRIs: nothing is fetched.

    A document that cannot be read, or has no time or several, is bad as a whole. An object that
    does not have its property's datatype makes its record bad. So does a second object of a
    property, unless ``several`` is set: then it has a row of its own.
    """

    time: str | Template
    properties: Mapping[str, Property] = field(default_factory=dict)
    several: bool = False
    syntax: str | None = None
    contexts: Mapping[str, str] = field(default_factory=dict)

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of documents; empty documents are skipped.

        The documents are in the column ``value``.
        """
        documents = [
            self._document(at, row)
            for at, row in enumerate(_rows(batch))
            if row.value.strip() or row.fault
        ]
        times = (
            fitted(batch.column(ARRIVED), pa.int64()).to_pylist() if self.time == ARRIVAL else []
        )
        return records_of(self, *_statements(self._timed(documents, times)))

    def _document(self, at: int, row: _Row) -> _Document:
        """Return a document's statements and the text of its time, or its fault."""
        try:
            quads = self._read(row)
            return _Document(at, quads, self._time(quads))
        except _BadError as bad:
            return _Document(at, [], fault=str(bad))

    def _timed(self, documents: Sequence[_Document], arrived: Sequence[int]) -> Sequence[_Document]:
        """Return documents with their times; all times are parsed at once."""
        if self.time == ARRIVAL:
            return [each._replace(time_ms=arrived[each.row]) for each in documents]
        read = times_in if isinstance(self.time, Template) else times_of
        times = read(pa.array([each.said for each in documents], pa.string())).to_pylist()
        return [each._replace(time_ms=time) for each, time in zip(documents, times, strict=True)]

    def _read(self, row: _Row) -> list[_Quad]:
        if row.fault:
            raise _BadError(row.fault)
        syntax = SYNTAXES[self._syntax(row)]
        try:
            row.value.decode()
        except UnicodeDecodeError:
            raise _BadError(NOT_UTF8) from None
        try:
            data = row.value
            if self.contexts and syntax.format == ox.RdfFormat.JSON_LD:
                data = _with_contexts(data, self.contexts)
            parsed = list(ox.parse(data, syntax.format))
        except (SyntaxError, ValueError, RecursionError):
            raise _BadError(f"not {syntax.name}") from None
        if any(isinstance(quad.object, ox.Triple) for quad in parsed):
            raise _BadError(f"not {syntax.name} of RDF 1.1")
        if not parsed:
            raise _BadError("no statement in it")
        names = _Names(row)
        return [
            _Quad(
                names.of(quad.subject), str(quad.predicate), names.of(quad.object), quad.graph_name
            )
            for quad in parsed
        ]

    def _syntax(self, row: _Row) -> str:
        if self.syntax is not None:
            return self.syntax
        by_type = _BY_CONTENT_TYPE.get(row.content_type.partition(";")[0].strip().lower())
        found = by_type or _BY_ENDING.get(PurePath(row.file).suffix.lower())
        if found is None:
            raise _BadError("neither its content type nor its file's ending says how it is written")
        return found

    def _time(self, quads: Sequence[_Quad]) -> str:
        """Return the text of a document's time; empty if the arrival is the time."""
        if self.time == ARRIVAL:
            return ""
        if isinstance(self.time, Template):
            place, said = "the graph's name", _in_names(quads, self.time)
        else:
            place, said = (
                f"<{self.time}>",
                {quad.object for quad in quads if quad.predicate == f"<{self.time}>"},
            )
        if not said:
            raise _BadError(f"no time in {place}")
        if len(said) > 1:
            raise _BadError(f"more than one time in {place}")
        return said.pop()


class _BadError(Exception):
    """Error: a document cannot be used."""


class _Row(NamedTuple):
    value: bytes
    file: str
    position: int | None
    content_type: str
    fault: str | None


class _Quad(NamedTuple):
    """A statement: its terms in N-Triples syntax, and its graph."""

    subject: str
    predicate: str
    object: str
    graph: Any


class _Document(NamedTuple):
    row: int
    quads: Sequence[_Quad]
    said: str = ""
    time_ms: int | None = None
    fault: str | None = None


def _rows(batch: pa.RecordBatch) -> Iterator[_Row]:
    """Yield a batch's rows, with empty values for columns that its source does not have."""

    def column(name: str, nothing: object) -> list[Any]:
        if name not in batch.schema.names:
            return [nothing] * batch.num_rows
        return [nothing if each is None else each for each in batch.column(name).to_pylist()]

    names = (("value", b""), (FILE, ""), (POSITION, None), (CONTENT_TYPE, ""), (MISFIT, None))
    rows = map(_Row, *(column(name, nothing) for name, nothing in names))
    for row, size in zip(rows, column(SIZE, 0), strict=True):
        yield (
            row
            if size <= len(row.value) or row.fault
            else row._replace(fault="only its beginning was kept")
        )


class _Names:
    """Names for a document's terms in N-Triples syntax.

    Blank nodes become IRIs, the same ones each time the document is read.
    """

    def __init__(self, row: _Row) -> None:
        # Its place or, if that is not known, its content.
        self._place = row.value if row.position is None else f"{row.file} {row.position}".encode()
        self._blank: dict[str, str] = {}

    def of(self, term: Any) -> str:
        """Return a term's text."""
        if not isinstance(term, ox.BlankNode):
            return str(term)
        if term.value not in self._blank:
            # A parser invents new names each time; only the order of the nodes is stable.
            document = hashlib.sha256(self._place).hexdigest()[:16]
            self._blank[term.value] = f"<{BLANK}{document}-{len(self._blank)}>"
        return self._blank[term.value]


def _in_names(quads: Sequence[_Quad], template: Template) -> set[str]:
    names = {getattr(quad.graph, "value", "") for quad in quads}
    before, after = template.prefix, template.suffix
    fit = [name for name in names if name.startswith(before) and name.endswith(after)]
    return {name[len(before) : len(name) - len(after)] for name in fit}


def _with_contexts(data: bytes, contexts: Mapping[str, str]) -> bytes:
    """Return a JSON-LD document with the IRIs of known contexts replaced by the contexts."""

    def known(context: Any) -> Any:
        if isinstance(context, list):
            return [known(each) for each in context]
        return (
            json.loads(contexts[context])
            if isinstance(context, str) and context in contexts
            else context
        )

    def changed(node: Any) -> Any:
        if isinstance(node, list):
            return [changed(each) for each in node]
        if not isinstance(node, dict):
            return node
        return {
            key: known(value) if key == "@context" else changed(value)
            for key, value in node.items()
        }

    return json.dumps(changed(json.loads(data))).encode()


def _statements(documents: Sequence[_Document]) -> tuple[Statements, pa.Int64Array]:
    """Return the documents' statements, grouped by document and subject, and each group's time."""
    terms: list[tuple[str, str, str]] = []
    faults: list[str | None] = []
    groups: list[int] = []
    rows: list[int] = []
    times: list[int | None] = []
    for document in documents:
        by_subject: dict[str, list[_Quad]] = {}
        for quad in document.quads if document.fault is None else ():
            by_subject.setdefault(quad.subject, []).append(quad)
        said = [
            [(each.subject, each.predicate, each.object) for each in quads]
            for quads in by_subject.values()
        ]
        for triples in said or [[NOTHING]]:
            terms += triples
            faults += [document.fault] * len(triples)
            groups += [len(times)] * len(triples)
            rows += [document.row] * len(triples)
            times.append(document.time_ms)
    subject, predicate, object_ = (
        pa.array([each[at] for each in terms], pa.string()) for at in range(3)
    )
    statements = Statements(
        subject,
        predicate,
        object_,
        graph=pa.repeat(pa.scalar("", pa.string()), len(terms)),
        fault=pa.array(faults, pa.string()),
        group=np.array(groups, np.int64),
        row=np.array(rows, np.int64),
    )
    return statements, pa.array(times, pa.int64())
