"""Readers of stream mappings, from rows to records: one function per format."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, TypeVar

from acquatop.catalog.objects import Prefixes, iri_of, read_object, read_property
from acquatop.catalog.remotes import expanded
from acquatop.catalog.section import Section
from acquatop.plugins import CONNECTORS
from connectors.columns import ColumnsMapping
from connectors.contract import RecordDecoder
from connectors.delimited import CsvMapping, Dialect
from connectors.graphs import SYNTAXES, GraphMapping
from connectors.mapping import (
    ARRIVAL,
    DATATYPES,
    IRI,
    TIMES,
    FieldMapping,
    JsonMapping,
    Property,
    Template,
)
from connectors.message_fields import is_of_envelope, is_text
from connectors.ntriples import NTriplesMapping
from connectors.registry import ARRIVALS, ENVELOPES, PLACES, TOPICS
from connectors.topics import is_topic
from connectors.x_api.posts import CREATED, PostsMapping
from replica.terms import is_term

_FIELDS = ("format", "subject", "time", "time_as", "properties")

_ANY = (PLACES, ARRIVALS, TOPICS, ENVELOPES)

Fields = TypeVar("Fields", bound=FieldMapping)


def read_mapping(
    section: Section, prefixes: Prefixes, connector: str, arrivals: str
) -> RecordDecoder:
    """Return the decoder of a stream's records."""
    known = CONNECTORS[connector].formats if connector in CONNECTORS else tuple(FORMATS)
    format_ = section.choice("format", tuple(FORMATS), default=known[0])
    if format_ in FORMATS and format_ not in known:
        hint = f"it reads {', '.join(known)}"
        section.problem(
            f'the connector "{connector}" has no rows of the format "{format_}"', "format", hint
        )
    mapping = FORMATS.get(format_, _json)(section, prefixes, arrivals)
    _check_source(mapping, section, connector)
    return mapping


def _json(section: Section, prefixes: Prefixes, arrivals: str) -> RecordDecoder:
    section.allow(*_FIELDS)
    several = arrivals == "all"
    return _checked(JsonMapping(**_fields(section, prefixes), several=several), section)


def _columns(section: Section, prefixes: Prefixes, arrivals: str) -> RecordDecoder:
    section.allow(*_FIELDS)
    several = arrivals == "all"
    return _checked(ColumnsMapping(**_fields(section, prefixes), several=several), section)


def _csv(section: Section, prefixes: Prefixes, arrivals: str) -> RecordDecoder:
    section.allow(*_FIELDS, "columns", "delimiter", "quote")
    usual = Dialect()
    delimiter, quote = (
        section.text(key, default=getattr(usual, key)) for key in ("delimiter", "quote")
    )
    if not _is_delimiter(delimiter) or delimiter == quote:
        section.problem('"delimiter" must be one ASCII character, and not the quote', "delimiter")
    if quote and not _is_delimiter(quote):
        section.problem('"quote" must be one ASCII character, or "" for none', "quote")
    columns = tuple(section.texts("columns"))
    dialect = Dialect(delimiter, quote)
    return _checked(
        CsvMapping(**_fields(section, prefixes), columns=columns, dialect=dialect), section
    )


def _ntriples(section: Section, prefixes: Prefixes, arrivals: str) -> RecordDecoder:
    section.allow("format", "time", "properties")
    several = arrivals == "all"
    return NTriplesMapping(
        _statement_time(section, prefixes), _predicates(section, prefixes), several
    )


def _rdf(section: Section, prefixes: Prefixes, arrivals: str) -> RecordDecoder:
    section.allow("format", "time", "properties", "syntax", "contexts")
    return GraphMapping(
        time=ARRIVAL if section.written("time") == ARRIVAL else _statement_time(section, prefixes),
        properties=_predicates(section, prefixes),
        several=arrivals == "all",
        syntax=section.choice("syntax", tuple(SYNTAXES)) if "syntax" in section else None,
        contexts=_contexts(section.section("contexts")),
    )


def _posts(section: Section, prefixes: Prefixes, arrivals: str) -> RecordDecoder:
    section.allow("format", "subject", "time", "properties")
    subject = _subject(section, prefixes)
    time = section.text("time", default=CREATED)
    try:
        mapping = PostsMapping(subject, time, _properties(section, prefixes))
        mapping.check_arrivals(arrivals)
    except ValueError as error:
        section.problem(str(error))
        mapping = PostsMapping(subject)
    return mapping


FORMATS: Mapping[str, Callable[[Section, Prefixes, str], RecordDecoder]] = {
    "json": _json,
    "csv": _csv,
    "columns": _columns,
    "ntriples": _ntriples,
    "rdf": _rdf,
    "x": _posts,
}
"""Readers of mappings, by the names of formats."""


# Fields -------------------------------------------------------------------------------------------


def _fields(section: Section, prefixes: Prefixes) -> dict[str, Any]:
    """Return the arguments that mappings of fields have in common."""
    time_as = section.choice("time_as", tuple(TIMES), default="milliseconds")
    return {
        "subject": _subject(section, prefixes),
        "time": section.text("time"),
        "properties": _properties(section, prefixes),
        "time_as": time_as if time_as in TIMES else "milliseconds",
    }


def _checked(mapping: Fields, section: Section) -> Fields:
    """Return a mapping; note numbers and times that should be made of topics and other texts."""
    numbers = [
        each.field
        for each in mapping.properties.values()
        if DATATYPES[each.datatype] != DATATYPES[IRI]
    ]
    for name in filter(is_text, [mapping.time, *numbers]):
        section.problem(f'"{name}" is a text', hint="let it be an xsd:string, or a part of an IRI")
    return mapping


def _check_source(mapping: RecordDecoder, section: Section, connector: str) -> None:
    """Note what a mapping needs of rows, beside their content, but a source does not say."""
    says = CONNECTORS[connector].says if connector in CONNECTORS else _ANY
    if getattr(mapping, "time", "") == ARRIVAL and ARRIVALS not in says:
        hint = "name the field or the predicate that holds the time"
        section.problem(
            f'the connector "{connector}" does not say when its rows came', "time", hint
        )
    names_rows = (
        isinstance(mapping, FieldMapping) and mapping.subject.prefix and not mapping.subject.field
    )
    if names_rows and PLACES not in says:
        hint = "name a field in the template"
        section.problem(
            f'the connector "{connector}" does not say where its rows stand', "subject", hint
        )
    for name in mapping.types if isinstance(mapping, FieldMapping) else ():
        lacking = _lacking(name, says if isinstance(mapping, JsonMapping) else ())
        if lacking:
            section.problem(
                f'rows of this format from the connector "{connector}" have no {lacking} for '
                f'"{name}"'
            )
    options = CONNECTORS[connector].options if connector in CONNECTORS else {"header": None}
    if isinstance(mapping, CsvMapping) and not mapping.columns and "header" not in options:
        hint = 'name its columns, such as columns = ["time", "user"]'
        section.problem(f'what the connector "{connector}" reads has no first line', "format", hint)


def _lacking(field: str, says: Collection[str]) -> str | None:
    """Return what a field is made of, if a source does not say it."""
    if is_topic(field):
        return None if TOPICS in says else "topic"
    return "key, header or time" if is_of_envelope(field) and ENVELOPES not in says else None


def _is_delimiter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and text not in "\r\n\0"


def _subject(section: Section, prefixes: Prefixes) -> Template:
    subject = section.text("subject")
    template = Template("", "", "")
    try:
        template = Template.parse(
            subject if subject.startswith("{") else expanded(subject, prefixes)
        )
    except ValueError as error:
        if subject:
            section.problem(str(error), key="subject")
    if (template.prefix or template.suffix) and not is_term(
        f"<{template.prefix}1{template.suffix}>"
    ):
        section.problem(f'"{subject}" does not make IRIs', key="subject")
    return template


def _properties(section: Section, prefixes: Prefixes) -> Mapping[str, Property]:
    return {
        iri_of(name, table, prefixes): read_property(table, prefixes)
        for name, table in section.section("properties", required=True).tables()
    }


# Statements ---------------------------------------------------------------------------------------


def _statement_time(section: Section, prefixes: Prefixes) -> str | Template:
    """Return the predicate whose object is the time, or a template of graph names with the time."""
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


def _predicates(section: Section, prefixes: Prefixes) -> Mapping[str, Property]:
    """Return the properties of statements, whose only field is the object."""
    found = {}
    for name, table in section.section("properties", required=True).tables():
        table.allow("datatype")
        iri = iri_of(name, table, prefixes)
        found[iri] = read_object(iri, table, prefixes)
    return found


def _contexts(section: Section) -> Mapping[str, str]:
    """Return JSON-LD contexts by IRI, each as JSON: a file's content, or its ``@context``."""
    found = {}
    for iri in section:
        path = section.path(iri)
        try:
            document = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            section.problem(f'"{Path(path).name}" cannot be read as JSON: {error}', iri)
            continue
        found[iri] = json.dumps(
            document.get("@context", document) if isinstance(document, dict) else document
        )
    return found
