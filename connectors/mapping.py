"""Mapping from records to RDF: a record's fields become an item with one subject and properties.

No triples are built: a batch of records becomes columns, and a column stands for the triples that
share its predicate.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted
from connectors.coded import CODED, coded, uncoded
from connectors.fields import FAULT, ROW
from connectors.instants import EARLIEST_MS, LATEST_MS, milliseconds
from connectors.json_records import parse
from connectors.row_origins import ARRIVED, origins_of
from connectors.topics import is_topic, topic_fields

_XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_DOUBLE = _XSD + "double"
IRI = "iri"
"""Mark used instead of a datatype if the objects are IRIs, in N-Triples syntax: ``<…>``."""
DATATYPES: Mapping[str, pa.DataType] = {
    _XSD + "integer": pa.int64(),
    XSD_DOUBLE: pa.float64(),
    _XSD + "string": pa.string(),
    IRI: pa.string(),
}
"""Datatypes that a property may have, with the columns that hold them."""

TIME, SUBJECT, BAD = "time_ms", "subject", "bad"
ARRIVAL = "@arrival"
"""Mark used instead of the time's field if a row's arrival is its time."""
TIMES: Mapping[str, pa.DataType] = {
    "milliseconds": pa.int64(),
    "seconds": pa.float64(),
    "dateTime": pa.string(),
}
"""Forms of a time (since the epoch, or as an xsd:dateTime), with the columns that hold them."""
_TIME_NAMES = {
    "milliseconds": "a time in milliseconds",
    "seconds": "a time in seconds",
    "dateTime": "an xsd:dateTime",
}
# Characters allowed in an IRI by RFC 3987, in the syntax of Arrow's regular expressions.
_FIT_FOR_IRI = (
    r"^(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2}|"
    r"[\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}\x{10000}-\x{1FFFD}\x{20000}-\x{2FFFD}\x{30000}-\x{3FFFD}])*$"
)

_USUAL = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._~!$&'()*+,;=:@/?-"
"""Bytes allowed anywhere in an IRI."""
WHOLE_IRI = _FIT_FOR_IRI.replace("^", "^[A-Za-z][A-Za-z0-9+.-]*:", 1).replace("/?-]", "/?#-]")


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

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The needed fields, with the type that each must have."""
        fields = {each.field: DATATYPES[each.datatype] for each in self.properties.values()}
        fields |= {self.subject.field: pa.string()} if self.subject.field else {}
        return fields | ({} if self.time == ARRIVAL else {self.time: TIMES[self.time_as]})

    @property
    def names(self) -> frozenset[str]:
        """The fields that become parts of IRIs, for which an integer is as good as a text."""
        parts = [each.field for each in self.properties.values() if each.template is not None]
        return frozenset([*parts, self.subject.field])

    def items(self, fields: pa.Table, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the items of records given by their fields, each in the type that its use needs.

        ``rows`` is the batch of the source. The column :data:`~connectors.fields.ROW` has the index
        of each record in it. The column :data:`~connectors.fields.FAULT`, if there is one, has the
        faults that are already known.
        """
        return _Items(self, fields, rows).batch()


@dataclass(frozen=True)
class JsonMapping(FieldMapping):
    """Mapping from a JSON object to RDF.

    For a message, fields may be its topic (:mod:`connectors.topics`).
    """

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of lines, each a JSON object in the column ``value``.

        An unusable line becomes a row of nulls with the reason in the column ``bad``. Empty lines
        are skipped. A property that an object lacks is null.
        """
        topics = [name for name in self.types if is_topic(name)]
        own = {name: type_ for name, type_ in self.types.items() if name not in topics}
        fields = parse(batch.column("value"), own, self.names)
        for name, column in topic_fields(batch, topics).items() if topics else ():
            fields = fields.append_column(name, column.take(_single(fields[ROW])))
        return self.items(fields, batch)

    def decode(self, lines: pa.BinaryArray) -> pa.RecordBatch:
        """Return the records in lines without places."""
        return self.records(pa.record_batch([lines], ["value"]))


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


class _Items:
    """Assembler of the items of one batch, column by column."""

    def __init__(self, mapping: FieldMapping, fields: pa.Table, rows: pa.RecordBatch) -> None:
        self._mapping = mapping
        self._fields = fields
        self._source = rows
        self._rows = _single(fields[ROW])
        self._bad = (
            fields[FAULT] if FAULT in fields.column_names else pa.nulls(len(fields), pa.string())
        )

    def batch(self) -> pa.RecordBatch:
        """Return the items."""
        times, subjects = self._times(), self._subjects()
        objects = [self._objects(each) for each in self._mapping.properties.values()]
        columns = [_single(column) for column in (times, subjects, *objects)]
        bad = _single(self._bad)
        if bad.null_count < len(bad):
            columns = [_hidden(column, bad) for column in columns]
        return pa.RecordBatch.from_arrays([*columns, bad, self._rows], schema=self._mapping.schema)

    def _note(self, good: pa.BooleanArray, reason: str) -> None:
        """Note a fault for each record that is not good; the first fault of a record counts."""
        if not _all(good):
            self._bad = pc.if_else(pc.or_(good, pc.is_valid(self._bad)), self._bad, reason)

    def _times(self) -> pa.Int64Array:
        name, written_as = self._mapping.time, self._mapping.time_as
        if name == ARRIVAL:
            return fitted(self._source.column(ARRIVED), pa.int64()).take(self._rows)
        written = self._fields[name]
        self._note(pc.is_valid(written), f'no time in the field "{name}"')
        times = _READ_AS[written_as](_single(written))
        self._note(pc.or_(pc.is_null(written), pc.is_valid(times)), _no_time(name, written_as))
        self._note(
            pc.fill_null(is_time(times), True),
            f'the time in the field "{name}" is not in the years 1 to 9999',
        )
        return times

    def _subjects(self) -> pa.DictionaryArray:
        subject = self._mapping.subject
        if not subject.field:
            return uncoded(_in_template(_own_names(self._source).take(self._rows), subject))
        names = coded(_single(self._fields[subject.field]))
        self._note(pc.is_valid(names), f'no subject in the field "{subject.field}"')
        return self._iris(names, subject.field, subject)

    def _objects(self, about: Property) -> pa.Array:
        values = self._fields[about.field]
        if about.datatype == IRI:
            return self._iris(coded(_single(values)), about.field, about.template)
        return uncoded(_single(values)) if pa.types.is_string(_text_type(values)) else values

    def _iris(
        self, names: pa.DictionaryArray, field: str, template: Template | None
    ) -> pa.DictionaryArray:
        """Return names as IRIs, each distinct one checked and written once."""
        each = names.dictionary
        if template is None:
            self._note(_of_each(_is_iri(each), names), f'the field "{field}" is not an IRI')
            return _recoded(names, pc.binary_join_element_wise("<", each, ">", ""))
        good = _of_each(_make_iris(each, template), names)
        self._note(good, f'the field "{field}" does not fit into an IRI')
        return _recoded(names, _in_template(each.cast(pa.string()), template))


def _own_names(rows: pa.RecordBatch) -> pa.StringArray:
    """Return a name for each row, made from its place: the same each time it is read."""
    files, positions = origins_of(rows)
    assert positions is not None, "the catalog lets only sources pass that say it"
    numbers = positions.cast(pa.string())
    if files is None:
        return numbers
    names = _single(files).dictionary_encode()
    hashes = [
        hashlib.sha256(each.encode()).hexdigest()[:16] for each in names.dictionary.to_pylist()
    ]
    return pc.binary_join_element_wise(
        pa.array(hashes, pa.string()).take(names.indices), numbers, "-"
    )


def _no_time(field: str, written_as: str) -> str:
    return f'the field "{field}" is not {_TIME_NAMES[written_as]}'


def _of_seconds(seconds: pa.DoubleArray) -> pa.Int64Array:
    # So many seconds are beyond all years, and fit once they are multiplied.
    most, options = float(LATEST_MS), {"skip_nulls": False}
    within = pc.max_element_wise(pc.min_element_wise(seconds, most, **options), -most, **options)
    return pc.cast(pc.round(pc.multiply(within, 1000.0)), pa.int64(), safe=False)


_READ_AS = {"milliseconds": lambda times: times, "seconds": _of_seconds, "dateTime": milliseconds}


def _held_as(type_: pa.DataType) -> pa.DataType:
    return CODED if pa.types.is_string(type_) else type_


def _text_type(values: pa.ChunkedArray) -> pa.DataType:
    """Return the type of a column's values, whether they are coded or not."""
    type_ = values.type
    return type_.value_type if pa.types.is_dictionary(type_) else type_


def _of_each(good: pa.BooleanArray, names: pa.DictionaryArray) -> pa.BooleanArray:
    """Return for each value the verdict on its distinct value; nulls are good."""
    if _all(good):
        return pa.repeat(True, len(names))
    return pc.fill_null(good.take(names.indices), True)


def _recoded(names: pa.DictionaryArray, terms: pa.StringArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(names.indices, terms)


def _in_template(names: pa.Array, template: Template) -> pa.Array:
    return pc.binary_join_element_wise(f"<{template.prefix}", names, f"{template.suffix}>", "")


def _make_iris(names: pa.Array, template: Template) -> pa.BooleanArray:
    """Return True for each name that makes an IRI; nulls are good.

    Numbers fit every template with a prefix, and none without.
    """
    if pa.types.is_integer(names.type):
        return (
            pa.repeat(bool(template.prefix), len(names)) if template.prefix else pc.is_null(names)
        )
    if template.prefix and _are_usual(names):
        return pa.repeat(True, len(names))
    fit = pc.match_substring_regex(names, _FIT_FOR_IRI if template.prefix else WHOLE_IRI)
    return pc.fill_null(fit, True)


def _are_usual(names: pa.StringArray) -> bool:
    """Return True if all names are of usual characters: far cheaper to tell than by a pattern."""
    texts = names.cast(pa.large_binary())
    _, offsets, data = texts.buffers()
    if data is None or not len(texts):
        return True
    bounds = np.frombuffer(offsets, np.int64)[[texts.offset, texts.offset + len(texts)]].tolist()
    return not data.slice(bounds[0], bounds[1] - bounds[0]).to_pybytes().translate(None, _USUAL)


def _all(good: pa.BooleanArray) -> bool:
    return bool(pc.all(good, min_count=0).as_py())


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _hidden(column: pa.Array, bad: pa.StringArray) -> pa.Array:
    """Return a column with nulls in the bad rows."""
    rows = pa.array(np.arange(len(column)), mask=pc.is_valid(bad).to_numpy(zero_copy_only=False))
    return column.take(rows)


def is_time(times: pa.Array) -> pa.Array:
    """Return True for each time in milliseconds since the epoch within the years 1 to 9999."""
    return pc.and_(pc.greater_equal(times, EARLIEST_MS), pc.less_equal(times, LATEST_MS))


def _is_iri(texts: pa.Array) -> pa.Array:
    return pc.match_substring_regex(texts, WHOLE_IRI)


def count_faults(batches: Iterable[pa.RecordBatch]) -> dict[str, int]:
    """Return the number of rows with each fault."""
    counts: dict[str, int] = {}
    for batch in batches:
        for pair in pc.value_counts(batch.column(BAD).drop_null()).to_pylist():
            counts[pair["values"]] = counts.get(pair["values"], 0) + pair["counts"]
    return counts
