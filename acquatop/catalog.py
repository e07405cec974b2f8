"""The catalog: which source a stream's IRI stands for, which remote a service's, which file a graph's.

A catalog is a TOML file; ``docs/catalog.md`` lists every key. Only what it names is ever read
or contacted. ``${NAME}`` in a value stands for an environment variable.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from acquatop.catalog_section import CatalogError, Document, Section
from acquatop.catalog_services import SOLUTIONS, Refresh, Service, read_service
from acquatop.catalog_sources import KINDS, expanded
from acquatop.operators.proposers import PROPOSERS
from acquatop.static_graphs import StaticGraph, format_of
from connectors import CONNECTORS, FORMATS
from connectors.columns import ColumnsMapping
from connectors.contract import RecordDecoder
from connectors.mapping import DATATYPES, IRI, JsonMapping, Property, Template
from connectors.ntriples import NTriplesMapping
from connectors.parquet import columns_option
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from replica.terms import is_term

__all__ = ["KINDS", "POLICIES", "SOLUTIONS", "Catalog", "CatalogError", "Refresh", "Service", "Stream"]

ARRIVALS = ("all", "latest", "distinct")
KEPT_IN = ("driver", "executors")
BUCKETS = 16
POLICIES = tuple(f"{proposer}-{ranker}" for proposer in PROPOSERS for ranker in DEFAULT_RANKERS)
_WELL_KNOWN = {"xsd": "http://www.w3.org/2001/XMLSchema#", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"}


@dataclass(frozen=True)
class Stream:
    """An RDF stream: where its records come from and how they become RDF.

    ``idle_ms`` is after how long without records time goes on by itself, ``late_path`` the file where
    what came too late is kept, ``ahead_ms`` how far a live record may be ahead of the clock; None where none of
    this happens. ``keys`` says where the aggregates of queries' keys are kept, and ``buckets`` into how many parts they
    are cut in the executors.
    """

    iri: str
    connector: str
    options: Mapping[str, str]
    mapping: RecordDecoder
    arrivals: str
    lateness_ms: int
    start_ms: int | None
    idle_ms: int | None = None
    late_path: str | None = None
    ahead_ms: int | None = None
    keys: str = "driver"
    buckets: int = BUCKETS


@dataclass(frozen=True)
class Catalog:
    """All that queries may name."""

    prefixes: Mapping[str, str]
    streams: Mapping[str, Stream]
    services: Mapping[str, Service]
    graphs: Mapping[str, StaticGraph] = field(default_factory=dict)

    @staticmethod
    def load(
        path: str | Path, *, variables: Mapping[str, str] | None = None, rankers: RankerRegistry = DEFAULT_RANKERS
    ) -> Catalog:
        """Read a catalog; :class:`CatalogError` names the file, the line and the key of what is wrong.

        ``variables`` are what ``${NAME}`` may stand for, the environment unless given; ``rankers``
        those that policies may name.
        """
        file = Path(path)
        try:
            text = file.read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            raise CatalogError(f"{file}: the catalog cannot be read: {_reason(error)}") from None
        return Catalog.parse(text, file=file, variables=variables, rankers=rankers)

    @staticmethod
    def parse(
        text: str,
        *,
        file: Path,
        variables: Mapping[str, str] | None = None,
        rankers: RankerRegistry = DEFAULT_RANKERS,
    ) -> Catalog:
        """Read a catalog's text; relative paths in it start from the folder of ``file``."""
        try:
            data = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise CatalogError(f"{file}: this is not TOML: {error}") from None
        document = Document(file, text, os.environ if variables is None else variables)
        catalog = _catalog(Section(document, data, ()), rankers)
        document.raise_problems()
        return catalog


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else "it is not UTF-8 text"


def _catalog(root: Section, rankers: RankerRegistry) -> Catalog:
    root.allow("prefixes", "streams", "services", "graphs")
    declared = {name: root.section("prefixes").text(name) for name in root.section("prefixes")}
    prefixes = {**_WELL_KNOWN, **declared}
    streams = [_stream(name, section, prefixes) for name, section in root.section("streams").tables()]
    services = [
        read_service(_iri(name, section, prefixes), section, prefixes, tuple(rankers))
        for name, section in root.section("services").tables()
    ]
    graphs = [_graph(name, section, prefixes) for name, section in root.section("graphs").tables()]
    _check_late(root, streams)
    return Catalog(
        prefixes=prefixes,
        streams={stream.iri: stream for stream in streams},
        services={service.iri: service for service in services},
        graphs={graph.iri: graph for graph in graphs},
    )


def _check_late(root: Section, streams: Sequence[Stream]) -> None:
    """Note files that two streams would write: after a crash each must cut off only what is its own."""
    paths: dict[str, str] = {}
    for stream in streams:
        if stream.late_path is not None and paths.setdefault(stream.late_path, stream.iri) != stream.iri:
            root.problem(f"<{stream.iri}> and <{paths[stream.late_path]}> have the same file for what is late")


def _iri(name: str, section: Section, prefixes: Mapping[str, str]) -> str:
    if ":" not in name:
        section.problem(f'"{name}" is not an IRI', hint="write a whole IRI, or a prefix of [prefixes] and a name")
    return expanded(name, prefixes)


def _stream(name: str, section: Section, prefixes: Mapping[str, str]) -> Stream:
    section.allow(
        "connector",
        "options",
        "mapping",
        "arrivals",
        "lateness",
        "start_ms",
        "idle",
        "late",
        "ahead",
        "keys",
        "buckets",
    )
    connector = section.choice("connector", tuple(CONNECTORS))
    arrivals = section.choice("arrivals", ARRIVALS, default="all")
    mapping = _mapping(section.section("mapping", required=True), prefixes, connector, arrivals)
    return Stream(
        iri=_iri(name, section, prefixes),
        connector=connector,
        options={**_options(connector, section.section("options")), **_implied(mapping)},
        mapping=mapping,
        arrivals=arrivals,
        lateness_ms=section.duration_ms("lateness", default=0),
        start_ms=section.whole("start_ms", default=None),
        idle_ms=section.duration_ms("idle", default=0, zero=False) or None,
        late_path=section.path("late") if "late" in section else None,
        ahead_ms=section.duration_ms("ahead", default=0, zero=False) or None,
        keys=_kept_in(section, arrivals),
        buckets=section.whole("buckets", default=BUCKETS, least=1),
    )


def _kept_in(section: Section, arrivals: str) -> str:
    """Return where keys are kept; executors cannot take back what something newer replaces."""
    keys = section.choice("keys", KEPT_IN, default="driver")
    if keys == "executors" and arrivals != "distinct":
        hint = 'set arrivals = "distinct" if every record has a subject of its own, or leave keys out'
        section.problem(
            f'keys = "executors" needs a stream whose arrivals are distinct, not "{arrivals}"', "keys", hint
        )
    return keys


def _implied(mapping: RecordDecoder) -> Mapping[str, str]:
    """Return what a source has to know of what its rows are read for."""
    if isinstance(mapping, NTriplesMapping):
        return {"together": mapping.together}
    if isinstance(mapping, ColumnsMapping):
        return {"columns": columns_option(mapping.types)}
    return {}


def _options(connector: str, section: Section) -> Mapping[str, str]:
    known = CONNECTORS.get(connector)
    if known is None:
        return {}
    section.allow(*known)
    values = {}
    for key, option in known.items():
        if key in section:
            whole = option.is_number and str(section.whole(key, least=1))
            values[key] = whole or (section.path(key) if key == "path" else section.text(key))
        elif option.required:
            section.problem(f'the connector "{connector}" needs the option "{key}"')
    return values


def _mapping(section: Section, prefixes: Mapping[str, str], connector: str, arrivals: str) -> RecordDecoder:
    known = FORMATS.get(connector, tuple(_FORMATS))
    format_ = section.choice("format", tuple(_FORMATS), default=known[0])
    if format_ in _FORMATS and format_ not in known:
        hint = f"it reads {', '.join(known)}"
        section.problem(f'the connector "{connector}" has no rows of the format "{format_}"', "format", hint)
    return _FORMATS.get(format_, _json)(section, prefixes, arrivals)


def _json(section: Section, prefixes: Mapping[str, str], arrivals: str) -> RecordDecoder:
    section.allow("format", "subject", "time", "properties")
    mapping = JsonMapping(_subject(section, prefixes), section.text("time"), _properties(section, prefixes))
    _check_fields(mapping, section)
    return mapping


def _columns(section: Section, prefixes: Mapping[str, str], arrivals: str) -> RecordDecoder:
    section.allow("format", "subject", "time", "properties")
    mapping = ColumnsMapping(_subject(section, prefixes), section.text("time"), _properties(section, prefixes))
    _check_fields(mapping, section)
    return mapping


def _ntriples(section: Section, prefixes: Mapping[str, str], arrivals: str) -> RecordDecoder:
    section.allow("format", "time", "properties")
    several = arrivals == "all"
    return NTriplesMapping(_statement_time(section, prefixes), _predicates(section, prefixes), several)


_FORMATS: Mapping[str, Callable[[Section, Mapping[str, str], str], RecordDecoder]] = {
    "json": _json,
    "ntriples": _ntriples,
    "columns": _columns,
}


def _statement_time(section: Section, prefixes: Mapping[str, str]) -> str | Template:
    """Return the predicate whose object is the time, or the template of graphs' names with the time in them."""
    written = section.text("time")
    if not written:
        return ""
    time = expanded(written, prefixes)
    if "{" in written:
        try:
            template = Template.parse(time)
        except ValueError as error:
            section.problem(str(error), "time")
            return ""
        if not is_term(f"<{template.prefix}1{template.suffix}>"):
            section.problem(f'"{written}" does not make IRIs', key="time")
        return template
    if not is_term(f"<{time}>"):
        hint = "write the predicate, or a template of the graphs' names such as urn:time:{ms}"
        section.problem(f'"{written}" is not an IRI', "time", hint)
    return time


def _subject(section: Section, prefixes: Mapping[str, str]) -> Template:
    subject = section.text("subject")
    template = Template("", "", "")
    try:
        template = Template.parse(subject if subject.startswith("{") else expanded(subject, prefixes))
    except ValueError as error:
        if subject:
            section.problem(str(error), key="subject")
    if template.prefix and not is_term(f"<{template.prefix}1{template.suffix}>"):
        section.problem(f'"{subject}" does not make IRIs', key="subject")
    return template


def _properties(section: Section, prefixes: Mapping[str, str]) -> Mapping[str, Property]:
    return {
        _iri(name, table, prefixes): _property(table, prefixes)
        for name, table in section.section("properties", required=True).tables()
    }


def _predicates(section: Section, prefixes: Mapping[str, str]) -> Mapping[str, Property]:
    """Return the properties of statements, whose only field is the object."""
    found = {}
    for name, table in section.section("properties", required=True).tables():
        table.allow("datatype")
        iri = _iri(name, table, prefixes)
        found[iri] = Property(iri, _datatype(table, prefixes))
    return found


def _check_fields(mapping: JsonMapping | ColumnsMapping, section: Section) -> None:
    """Note fields that are read as two kinds of value: a record has only one in each."""
    kinds = {mapping.subject.field: "the subject"}
    uses = [(mapping.time, "the time"), *((each.field, each.datatype) for each in mapping.properties.values())]
    for name, kind in uses:
        if kinds.setdefault(name, kind) != kind:
            section.problem(f'the field "{name}" cannot be both {kinds[name]} and {kind}')


def _property(section: Section, prefixes: Mapping[str, str]) -> Property:
    section.allow("field", "datatype")
    datatype = _datatype(section, prefixes)
    return Property(section.text("field"), datatype)


def _datatype(section: Section, prefixes: Mapping[str, str]) -> str:
    names = {iri: iri.replace(_WELL_KNOWN["xsd"], "xsd:") for iri in DATATYPES}
    written = section.text("datatype", default="xsd:string")
    datatype = written if written == IRI else _iri(written, section, prefixes)
    if datatype in DATATYPES:
        return datatype
    section.problem(f'the datatype "{written}" is not supported', "datatype", f"use {', '.join(names.values())}")
    return next(iter(DATATYPES))


def _graph(name: str, section: Section, prefixes: Mapping[str, str]) -> StaticGraph:
    section.allow("path")
    graph = StaticGraph(iri=_iri(name, section, prefixes), path=section.path("path"))
    if "path" in section and format_of(graph.path) is None:
        hint = "known are .ttl, .nt, .rdf and .n3"
        section.problem(f'"{Path(graph.path).name}" does not end as files with one graph do', "path", hint)
    return graph
