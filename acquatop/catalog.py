"""The catalog: which source a stream's IRI stands for, which remote a service's, which file a graph's.

A catalog is a TOML file; ``docs/catalog.md`` lists every key. Only what it names is ever read
or contacted. ``${NAME}`` in a value stands for an environment variable.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from acquatop.catalog_section import CatalogError, Document, Section
from acquatop.catalog_services import SOLUTIONS, Refresh, Service, read_service
from acquatop.catalog_sources import KINDS, expanded
from acquatop.operators.proposers import PROPOSERS
from acquatop.static_graphs import StaticGraph, format_of
from connectors import CONNECTORS
from connectors.mapping import DATATYPES, JsonMapping, Property, Template
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from replica.terms import is_term

__all__ = ["KINDS", "POLICIES", "SOLUTIONS", "Catalog", "CatalogError", "Refresh", "Service", "Stream"]

ARRIVALS = ("all", "latest")
POLICIES = tuple(f"{proposer}-{ranker}" for proposer in PROPOSERS for ranker in DEFAULT_RANKERS)
_WELL_KNOWN = {"xsd": "http://www.w3.org/2001/XMLSchema#", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"}


@dataclass(frozen=True)
class Stream:
    """An RDF stream: where its records come from and how they become RDF."""

    iri: str
    connector: str
    options: Mapping[str, str]
    mapping: JsonMapping
    arrivals: str
    lateness_ms: int
    start_ms: int | None


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
    return Catalog(
        prefixes=prefixes,
        streams={stream.iri: stream for stream in streams},
        services={service.iri: service for service in services},
        graphs={graph.iri: graph for graph in graphs},
    )


def _iri(name: str, section: Section, prefixes: Mapping[str, str]) -> str:
    if ":" not in name:
        section.problem(f'"{name}" is not an IRI', hint="write a whole IRI, or a prefix of [prefixes] and a name")
    return expanded(name, prefixes)


def _stream(name: str, section: Section, prefixes: Mapping[str, str]) -> Stream:
    section.allow("connector", "options", "mapping", "arrivals", "lateness", "start_ms")
    return Stream(
        iri=_iri(name, section, prefixes),
        connector=(connector := section.choice("connector", tuple(CONNECTORS))),
        options=_options(connector, section.section("options")),
        mapping=_mapping(section.section("mapping", required=True), prefixes),
        arrivals=section.choice("arrivals", ARRIVALS, default="all"),
        lateness_ms=section.duration_ms("lateness", default=0),
        start_ms=section.whole("start_ms", default=None),
    )


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


def _mapping(section: Section, prefixes: Mapping[str, str]) -> JsonMapping:
    section.allow("subject", "time", "properties")
    properties = {
        _iri(name, table, prefixes): _property(table, prefixes)
        for name, table in section.section("properties", required=True).tables()
    }
    subject = section.text("subject")
    template = Template("", "", "")
    try:
        template = Template.parse(subject if subject.startswith("{") else expanded(subject, prefixes))
    except ValueError as error:
        if subject:
            section.problem(str(error), key="subject")
    if template.prefix and not is_term(f"<{template.prefix}1{template.suffix}>"):
        section.problem(f'"{subject}" does not make IRIs', key="subject")
    mapping = JsonMapping(template, section.text("time"), properties)
    _check_fields(mapping, section)
    return mapping


def _check_fields(mapping: JsonMapping, section: Section) -> None:
    """Note fields that are read as two kinds of value: a record has only one in each."""
    kinds = {mapping.subject.field: "the subject"}
    uses = [(mapping.time, "the time"), *((each.field, each.datatype) for each in mapping.properties.values())]
    for name, kind in uses:
        if kinds.setdefault(name, kind) != kind:
            section.problem(f'the field "{name}" cannot be both {kinds[name]} and {kind}')


def _property(section: Section, prefixes: Mapping[str, str]) -> Property:
    section.allow("field", "datatype")
    names = {iri: iri.replace(_WELL_KNOWN["xsd"], "xsd:") for iri in DATATYPES}
    written = section.text("datatype", default="xsd:string")
    datatype = _iri(written, section, prefixes)
    if datatype not in DATATYPES:
        section.problem(f'the datatype "{written}" is not supported', "datatype", f"use {', '.join(names.values())}")
        datatype = next(iter(DATATYPES))
    return Property(section.text("field"), datatype)


def _graph(name: str, section: Section, prefixes: Mapping[str, str]) -> StaticGraph:
    section.allow("path")
    graph = StaticGraph(iri=_iri(name, section, prefixes), path=section.path("path"))
    if "path" in section and format_of(graph.path) is None:
        hint = "known are .ttl, .nt, .rdf and .n3"
        section.problem(f'"{Path(graph.path).name}" does not end as files with one graph do', "path", hint)
    return graph
