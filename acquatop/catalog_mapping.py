"""How the rows of a catalog's stream become records: one function per format."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from acquatop.catalog_section import Section
from acquatop.catalog_sources import expanded
from connectors.columns import ColumnsMapping
from connectors.contract import RecordDecoder
from connectors.mapping import DATATYPES, IRI, JsonMapping, Property, Template
from connectors.ntriples import NTriplesMapping
from connectors.registry import CONNECTORS
from connectors.x_api.posts import CREATED, PostsMapping
from replica.terms import is_term

WELL_KNOWN = {"xsd": "http://www.w3.org/2001/XMLSchema#", "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#"}
"""The prefixes that need not be declared."""


def read_mapping(section: Section, prefixes: Mapping[str, str], connector: str, arrivals: str) -> RecordDecoder:
    """Return what decodes a stream's records."""
    known = CONNECTORS[connector].formats if connector in CONNECTORS else tuple(_FORMATS)
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


def _posts(section: Section, prefixes: Mapping[str, str], arrivals: str) -> RecordDecoder:
    section.allow("format", "subject", "time", "properties")
    subject = _subject(section, prefixes)
    properties, templates = {}, {}
    for name, table in section.section("properties", required=True).tables():
        iri = iri_of(name, table, prefixes)
        if "{" in table.text("datatype", default=""):
            table.allow("field", "datatype")
            properties[iri] = Property(table.text("field"), IRI)
            templates[iri] = _template("datatype", table, prefixes)
        else:
            properties[iri] = _property(table, prefixes)
    try:
        mapping = PostsMapping(subject, properties, templates, section.text("time", default=CREATED))
        mapping.check_arrivals(arrivals)
    except ValueError as error:
        section.problem(str(error))
        mapping = PostsMapping(subject)
    return mapping


_FORMATS: Mapping[str, Callable[[Section, Mapping[str, str], str], RecordDecoder]] = {
    "json": _json,
    "ntriples": _ntriples,
    "columns": _columns,
    "x": _posts,
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
    return _template("subject", section, prefixes)


def _template(key: str, section: Section, prefixes: Mapping[str, str]) -> Template:
    """Return the template of IRIs that a key says."""
    written = section.text(key)
    template = Template("", "", "")
    try:
        template = Template.parse(written if written.startswith("{") else expanded(written, prefixes))
    except ValueError as error:
        if written:
            section.problem(str(error), key=key)
    if template.prefix and not is_term(f"<{template.prefix}1{template.suffix}>"):
        section.problem(f'"{written}" does not make IRIs', key=key)
    return template


def _properties(section: Section, prefixes: Mapping[str, str]) -> Mapping[str, Property]:
    return {
        iri_of(name, table, prefixes): _property(table, prefixes)
        for name, table in section.section("properties", required=True).tables()
    }


def _predicates(section: Section, prefixes: Mapping[str, str]) -> Mapping[str, Property]:
    """Return the properties of statements, whose only field is the object."""
    found = {}
    for name, table in section.section("properties", required=True).tables():
        table.allow("datatype")
        iri = iri_of(name, table, prefixes)
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
    names = {iri: iri.replace(WELL_KNOWN["xsd"], "xsd:") for iri in DATATYPES}
    written = section.text("datatype", default="xsd:string")
    datatype = written if written == IRI else iri_of(written, section, prefixes)
    if datatype in DATATYPES:
        return datatype
    section.problem(f'the datatype "{written}" is not supported', "datatype", f"use {', '.join(names.values())}")
    return next(iter(DATATYPES))


def iri_of(name: str, section: Section, prefixes: Mapping[str, str]) -> str:
    """Return a name as an IRI, with its prefix written out; notes where it is none."""
    if ":" not in name:
        section.problem(f'"{name}" is not an IRI', hint="write a whole IRI, or a prefix of [prefixes] and a name")
    return expanded(name, prefixes)
