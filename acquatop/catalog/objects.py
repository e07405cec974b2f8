"""Readers of a stream's properties: the datatypes, languages and constants of their objects."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from acquatop.catalog.remotes import expanded
from acquatop.catalog.section import Section
from connectors.lexical import KNOWN, XSD
from connectors.mapping import DATATYPES, IRI, TERM, Property, Template, TermProperty
from connectors.objects import LANG_STRING, Datatype, Iris, Kind, Objects, Terms
from connectors.scalars import BARE
from replica.terms import is_language, is_term

WELL_KNOWN = {
    "xsd": "http://www.w3.org/2001/XMLSchema#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
"""Prefixes that need not be declared."""
_STRING = "xsd:string"

Prefixes = Mapping[str, str]


def read_property(section: Section, prefixes: Prefixes) -> Property:
    """Return a property of fields: its field, or the value that all records have."""
    section.allow("field", "datatype", "language", "value")
    if "value" in section:
        return _constant(section, prefixes)
    return read_object(section.text("field"), section, prefixes)


def read_object(field: str, section: Section, prefixes: Prefixes) -> Property:
    """Return a property of a field or, of statements, of a predicate."""
    section.allow("field", "datatype", "language")
    several = section.is_list("datatype")
    written = section.texts("datatype") if several else [section.text("datatype", default=_STRING)]
    if not written:
        section.problem("there is no datatype in the list", "datatype")
    kinds = [_kind(each, section, prefixes) for each in written]
    language = _language(section, kinds)
    if language:
        kinds = [Datatype(LANG_STRING)]
    elif Datatype(LANG_STRING) in kinds and "field" in section:
        hint = 'write language = "en", or language = "{field}", instead of the datatype'
        section.problem("a text with a language needs the language", "datatype", hint)
    if len(kinds) == 1 and not language and (plain := _plain(field, kinds[0])) is not None:
        return plain
    return TermProperty(field, TERM, objects=Objects(tuple(kinds), language))


def _plain(field: str, kind: Kind) -> Property | None:
    """Return a property whose column holds plain values; None if it needs terms."""
    if isinstance(kind, Datatype):
        return Property(field, kind.iri) if kind.iri in DATATYPES else None
    if not isinstance(kind, Iris):
        return None
    template = Template(kind.prefix, "", kind.suffix) if kind.prefix else None
    return Property(field, IRI, template)


def _kind(written: str, section: Section, prefixes: Prefixes) -> Kind:
    if "{" in written:
        return _template(written, section, prefixes)
    if written == IRI:
        return Iris()
    if written == TERM:
        return Terms()
    iri = iri_of(written, section, prefixes)
    if iri not in (*KNOWN, LANG_STRING):
        names = ", ".join(each.replace(XSD, "xsd:") for each in KNOWN)
        hint = f"use {names}, {IRI}, or a template of IRIs; of a list the first that fits counts"
        section.problem(f'the datatype "{written}" is not supported', "datatype", hint)
        return Datatype(XSD + "string")
    return Datatype(iri)


def _template(written: str, section: Section, prefixes: Prefixes) -> Iris:
    try:
        template = Template.parse(expanded(written, prefixes))
        if template.field or not is_term(f"<{template.prefix}1{template.suffix}>"):
            raise ValueError(f'"{written}" does not make IRIs of what is in the field')
    except ValueError as error:
        hint = 'write the IRI with {} in it, such as "http://example.org/user/{}"'
        section.problem(str(error), "datatype", hint)
        return Iris()
    return Iris(template.prefix, template.suffix)


def _language(section: Section, kinds: list[Kind]) -> str:
    """Return a language: a tag, or a field in braces; empty if there is none."""
    if "language" not in section:
        return ""
    if "field" not in section:
        section.problem(
            "statements say the language themselves", "language", 'use "rdf:langString"'
        )
    if any(each not in (Datatype(XSD + "string"), Datatype(LANG_STRING)) for each in kinds):
        section.problem("only texts have a language", "language", "leave the datatype out")
    language = section.text("language")
    if re.fullmatch(r"\{[^{}]+\}", language):
        return language
    if not is_language(language):
        hint = 'write a tag such as "en-GB", or the field of the tag in braces: "{lang}"'
        section.problem(f'"{language}" is not a language', "language", hint)
    return language.lower()


def _constant(section: Section, prefixes: Prefixes) -> Property:
    """Return a property with the same object in each record."""
    if "field" in section:
        section.problem('either "field" or "value" says the object, not both', "value")
    written, value = section.text("datatype", default=_STRING), section.scalar("value")
    language = section.text("language", default="").lower()
    kind: Kind = Datatype(LANG_STRING) if language else _kind(written, section, prefixes)
    said = expanded(value, prefixes) if isinstance(kind, Iris) and not kind.prefix else value
    term = Objects((kind,), language).terms(pa.array([BARE + said]))[0].as_py()
    if term is None or not is_term(term):
        section.problem(f'the value "{value}" is not {kind.words}', "value")
        term = '""'
    return TermProperty("", TERM, constant=term)


def iri_of(name: str, section: Section, prefixes: Prefixes) -> str:
    """Return a name as an IRI with its prefix expanded; note a problem if it is none."""
    if ":" not in name:
        section.problem(
            f'"{name}" is not an IRI',
            hint="write a whole IRI, or a prefix of [prefixes] and a name",
        )
    return expanded(name, prefixes)
