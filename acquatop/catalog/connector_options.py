"""Options of a catalog's connectors, validated and written in the form that sources expect."""

from __future__ import annotations

import json
from collections.abc import Mapping

from acquatop.catalog.section import Section
from acquatop.plugins import CONNECTORS
from connectors.columns import ColumnsMapping, coded_option, columns_option
from connectors.contract import RecordDecoder
from connectors.delimited import CsvMapping
from connectors.ntriples import NTriplesMapping
from connectors.option import Kind, Option
from connectors.x_api.posts import PostsMapping


def read_options(connector: str, section: Section) -> Mapping[str, str]:
    """Return the options that are set for a connector, as texts; none for an unknown connector."""
    if connector not in CONNECTORS:
        return {}
    known = CONNECTORS[connector].in_catalogs
    more = [key for key in section if key not in known] if CONNECTORS[connector].is_open else []
    section.allow(*known, *more)
    for key, option in known.items():
        if option.required:
            section.need(key, f'the connector "{connector}" needs the option "{key}"')
    values = {key: _text(key, option, section) for key, option in known.items() if key in section}
    return {**values, **{key: section.scalar(key) for key in more}}


def implied_options(mapping: RecordDecoder) -> Mapping[str, str]:
    """Return the options that a source needs because of the mapping of its rows."""
    if isinstance(mapping, NTriplesMapping):
        return {"together": mapping.together}
    if isinstance(mapping, CsvMapping):
        return {} if mapping.columns else {"header": "true"}
    if isinstance(mapping, ColumnsMapping):
        return {"columns": columns_option(mapping.types), "coded": coded_option(mapping.types)}
    if isinstance(mapping, PostsMapping):
        return {"fields": ",".join(mapping.asked_for)}
    return {}


def _text(key: str, option: Option, section: Section) -> str:
    """Return an option's value as text, in the form that a source expects."""
    match option.kind:
        case Kind.TEXT:
            return section.choice(key, option.choices) if option.choices else section.text(key)
        case Kind.PATH:
            return section.path(key)
        case Kind.NUMBER:
            return str(section.whole(key, least=option.least))
        case Kind.FLAG:
            return str(section.flag(key, default=False)).lower()
        case Kind.TEXTS:
            return json.dumps(section.texts(key))
        case Kind.TABLE:
            table = section.section(key)
            return json.dumps({name: table.text(name) for name in table})
        case Kind.SECRET:
            return section.secret(key).reveal()
