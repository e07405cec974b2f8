"""Mapping from records to RDF: a record's fields become an item with one subject and properties.

No triples are built: a batch of records becomes columns, and a column stands for the triples that
share its predicate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted
from connectors.fields import ROW
from connectors.items import Items
from connectors.json_kinds import EXACT
from connectors.json_records import Needed, parse
from connectors.lexical import INTEGERS, XSD
from connectors.message_fields import fields_beside, is_beside
from connectors.objects import Datatype, Kind
from connectors.properties import (
    ARRIVAL,
    BAD,
    DATATYPES,
    IRI,
    SUBJECT,
    TERM,
    TIME,
    TIMES,
    XSD_DOUBLE,
    Property,
    RecordColumns,
    Template,
    TermProperty,
    column_of,
    schema_of,
)
from connectors.scalars import SCALAR
from connectors.subjects import written

__all__ = [
    "ARRIVAL",
    "BAD",
    "DATATYPES",
    "IRI",
    "SUBJECT",
    "TERM",
    "TIME",
    "TIMES",
    "XSD_DOUBLE",
    "FieldMapping",
    "JsonMapping",
    "Property",
    "RecordColumns",
    "Template",
    "TermProperty",
    "column_of",
    "count_faults",
    "in_json",
    "schema_of",
]


@dataclass(frozen=True)
class FieldMapping(RecordColumns):
    """Mapping from a record's fields to RDF: its subject, its time and its properties.

    ``time`` is the field of the time, ``time_as`` the form in which it is written. A field is a
    path of names separated by dots.
    """

    subject: Template
    time: str
    properties: Mapping[str, Property] = field(default_factory=dict)
    time_as: str = "milliseconds"

    several: bool = field(default=False, repr=False, kw_only=True)
    """True if a list is several objects, each with a row of its own; else it makes a record bad."""

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The needed fields, with the type that each must have."""
        found: dict[str, tuple[pa.DataType, bool]] = {}
        for name, use in self._uses():
            found[name] = use if found.get(name, use) == use else (SCALAR, False)
        return {name: type_ for name, (type_, _) in found.items()}

    def _uses(self) -> Iterator[tuple[str, tuple[pa.DataType, bool]]]:
        """Yield the uses of fields: the type of each, and whether a number is as good as a text."""
        for each in self.properties.values():
            if not isinstance(each, TermProperty):
                yield each.field, (DATATYPES[each.datatype], each.template is not None)
            elif each.constant is None:
                yield each.field, (SCALAR, False)
        for language in self._languages:
            yield language, (SCALAR, False)
        if self.subject.field:
            yield self.subject.field, (pa.string(), True)
        if self.time != ARRIVAL:
            yield self.time, (TIMES[self.time_as], False)

    @property
    def _languages(self) -> Sequence[str]:
        """The fields that have languages of others."""
        terms = (each for each in self.properties.values() if isinstance(each, TermProperty))
        fields = (each.objects.language_field for each in terms)
        return [each for each in fields if each is not None]

    @property
    def names(self) -> frozenset[str]:
        """The fields that become parts of IRIs, for which an integer is as good as a text."""
        types = self.types
        return frozenset(
            name for name, (_, is_name) in self._uses() if is_name and types[name] != SCALAR
        )

    @property
    def lists(self) -> frozenset[str]:
        """The fields that may be lists: those of properties alone."""
        single = {self.subject.field, self.time, *self._languages}
        fields = {each.field for each in self.properties.values()}
        return frozenset(fields - single)

    def likely(self, name: str) -> pa.DataType:
        """Return the type that most values of a field of several uses or datatypes have.

        In that type ``5`` and ``5.0`` are only the same if all uses take them for the same.
        """
        types = list(self._types_of(name))
        if all(each == pa.float64() for each in types):
            return pa.float64()
        if all(each in (EXACT, pa.float64()) for each in types):
            return EXACT
        if any(each in (EXACT, pa.int64(), pa.float64()) for each in types):
            return pa.int64()
        return types[0]

    def _types_of(self, name: str) -> Iterator[pa.DataType]:
        """Yield the type of JSON that each use of a field wants most."""
        for each in self.properties.values():
            if isinstance(each, TermProperty) and each.field == name and each.constant is None:
                yield in_json(each.objects.kinds[0])
        yield from (pa.string() for each in self._languages if each == name)
        uses = (type_ for field, (type_, _) in self._uses() if field == name)
        yield from (each for each in uses if each != SCALAR)

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of a source's rows."""
        return written(self.named(batch))

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch, with subjects as names (:mod:`connectors.subjects`)."""
        raise NotImplementedError

    def items(self, fields: pa.Table, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the items of records given by their fields, each in the type that its use needs.

        ``rows`` is the batch of the source. The column :data:`~connectors.fields.ROW` has the index
        of each record in it. The column :data:`~connectors.fields.FAULT`, if there is one, has the
        faults that are already known.
        """
        return Items(self, fields, rows).batch()


@dataclass(frozen=True)
class JsonMapping(FieldMapping):
    """Mapping from a JSON object to RDF.

    Fields may be what a message has beside its content (:mod:`connectors.message_fields`).
    """

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of lines, each a JSON object in the column ``value``.

        An unusable line becomes a row of nulls with the reason in the column ``bad``. Empty lines
        are skipped. A property that an object lacks is null.
        """
        types = self.types
        beside = [name for name in types if is_beside(name)]
        own = {name: type_ for name, type_ in types.items() if name not in beside}
        likely = {name: self.likely(name) for name, type_ in own.items() if type_ == SCALAR}
        needed = Needed(own, self.names, self.lists.intersection(own), likely)
        fields = parse(batch.column("value"), needed)
        for name, column in fields_beside(batch, beside).items() if beside else ():
            said = fitted(column, types[name])
            fields = fields.append_column(name, said.take(fields[ROW].combine_chunks()))
        return self.items(fields, batch)

    def decode(self, lines: pa.BinaryArray) -> pa.RecordBatch:
        """Return the records in lines without places."""
        return self.records(pa.record_batch([lines], ["value"]))


def count_faults(batches: Iterable[pa.RecordBatch]) -> dict[str, int]:
    """Return the number of rows with each fault."""
    counts: dict[str, int] = {}
    for batch in batches:
        for pair in pc.value_counts(batch.column(BAD).drop_null()).to_pylist():
            counts[pair["values"]] = counts.get(pair["values"], 0) + pair["counts"]
    return counts


def in_json(kind: Kind) -> pa.DataType:
    """Return the type of JSON's values of a kind."""
    if not isinstance(kind, Datatype):
        return pa.string()
    types = {
        XSD + "decimal": EXACT,
        XSD + "boolean": pa.bool_(),
        **dict.fromkeys(INTEGERS, pa.int64()),
        **dict.fromkeys((XSD_DOUBLE, XSD + "float"), pa.float64()),
    }
    return types.get(kind.iri, pa.string())
