"""Properties of records: their datatypes, and the columns that hold their objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from connectors.coded import CODED
from connectors.fields import ROW
from connectors.lexical import INTEGERS, XSD
from connectors.objects import Objects

XSD_DOUBLE = XSD + "double"
IRI = "iri"
"""Mark used instead of a datatype if the objects are IRIs, in N-Triples syntax: ``<…>``."""
TERM = "term"
"""Mark used instead of a datatype if the column holds whole terms, in N-Triples syntax."""
DATATYPES: Mapping[str, pa.DataType] = {
    XSD + "integer": pa.int64(),
    XSD_DOUBLE: pa.float64(),
    XSD + "string": pa.string(),
    IRI: pa.string(),
    XSD + "float": pa.float64(),
    **dict.fromkeys(INTEGERS, pa.int64()),
    TERM: pa.string(),
}
"""Datatypes that a property's column may have, with the type that holds them."""

TIME, SUBJECT, BAD = "time_ms", "subject", "bad"
ARRIVAL = "@arrival"
"""Mark used instead of the time's field if a row's arrival is its time."""
TIMES: Mapping[str, pa.DataType] = {
    "milliseconds": pa.int64(),
    "seconds": pa.float64(),
    "dateTime": pa.string(),
}
"""Forms of a time (since the epoch, or as an xsd:dateTime), with the columns that hold them."""


NO_OBJECTS = Objects(())


@dataclass(frozen=True)
class Template:
    """Template of an IRI with one field of the record, such as ``http://example.org/user/{id}``.

    The field may also be the whole IRI. A template without a field, such as
    ``http://example.org/event/{}``, takes the record's place in its source, which is unique.
    """

    prefix: str
    field: str
    suffix: str

    @staticmethod
    def parse(text: str) -> Template:
        """Return the template in a text; raise ValueError unless it has exactly one ``{field}``."""
        match = re.fullmatch(r"([^{}]*)\{([^{}]*)\}([^{}]*)", text)
        if match is None or not (match[1] or match[2]):
            raise ValueError(
                f'"{text}" must have one {{field}} in it, such as "http://example.org/user/{{id}}"'
            )
        return Template(match[1], match[2], match[3])


@dataclass(frozen=True)
class Property:
    """Objects of a predicate: their field and datatype, or a template of their IRIs."""

    field: str
    datatype: str
    template: Template | None = None


@dataclass(frozen=True)
class TermProperty(Property):
    """Objects of a predicate that are held as terms: of several datatypes, or with a language.

    A ``constant`` is the object of every record.
    """

    objects: Objects = NO_OBJECTS
    constant: str | None = None


class RecordColumns:
    """Base of mappings: the columns of the records that they decode."""

    properties: Mapping[str, Property]

    def column(self, predicate: str) -> str:
        """Return the name of the column that holds a predicate's objects."""
        return column_of(self.properties, predicate)

    @property
    def schema(self) -> pa.Schema:
        """The columns of decoded batches.

        They are the time, the subject (an N-Triples IRI), one per predicate, the fault and the row.
        """
        return schema_of(self.properties)


def column_of(properties: Mapping[str, Property], predicate: str) -> str:
    """Return the name of the column that holds a predicate's objects."""
    return f"p{list(properties).index(predicate)}"


def schema_of(properties: Mapping[str, Property]) -> pa.Schema:
    """Return the columns of decoded batches; texts are coded (:mod:`connectors.coded`)."""
    objects = [
        (column_of(properties, iri), _held_as(DATATYPES[each.datatype]))
        for iri, each in properties.items()
    ]
    return pa.schema(
        [
            (TIME, pa.int64()),
            (SUBJECT, CODED),
            *objects,
            (BAD, pa.string()),
            (ROW, pa.int32()),
        ]
    )


def _held_as(type_: pa.DataType) -> pa.DataType:
    return CODED if pa.types.is_string(type_) else type_
