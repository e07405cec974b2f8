"""From a record to RDF: a JSON object becomes an item with one subject and some properties.

No triples are built: a batch of records becomes columns, and a column stands for the triples
that share its predicate.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

_XSD = "http://www.w3.org/2001/XMLSchema#"
XSD_DOUBLE = _XSD + "double"
IRI = "iri"
"""In place of a datatype: the objects are IRIs. Their column holds them as N-Triples writes them, ``<…>``."""
DATATYPES: Mapping[str, pa.DataType] = {
    _XSD + "integer": pa.int64(),
    XSD_DOUBLE: pa.float64(),
    _XSD + "string": pa.string(),
    IRI: pa.string(),
}
"""The datatypes a property may have, and the columns that hold them."""

TIME, SUBJECT, BAD = "time_ms", "subject", "bad"
FAULT = ""
"""The column of faults among a record's fields; no field of a mapping has an empty name."""
EARLIEST_MS, LATEST_MS = -62_135_596_800_000, 253_402_300_799_999
# What may stand in an IRI after RFC 3987, in the syntax of Arrow's regular expressions.
_FIT_FOR_IRI = (
    r"^(?:[A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-Fa-f]{2}|"
    r"[\x{A0}-\x{D7FF}\x{F900}-\x{FDCF}\x{FDF0}-\x{FFEF}\x{10000}-\x{1FFFD}\x{20000}-\x{2FFFD}\x{30000}-\x{3FFFD}])*$"
)

WHOLE_IRI = _FIT_FOR_IRI.replace("^", "^[A-Za-z][A-Za-z0-9+.-]*:", 1).replace("/?-]", "/?#-]")


@dataclass(frozen=True)
class Template:
    """An IRI with one field of the record in it, such as ``http://example.org/user/{id}``, or a field with it all."""

    prefix: str
    field: str
    suffix: str

    @staticmethod
    def parse(text: str) -> Template:
        """Return the template a text says; ValueError when there is not one ``{field}`` in it."""
        match = re.fullmatch(r"([^{}]*)\{([^{}]+)\}([^{}]*)", text)
        if match is None:
            raise ValueError(f'"{text}" must have one {{field}} in it, such as "http://example.org/user/{{id}}"')
        return Template(match[1], match[2], match[3])


@dataclass(frozen=True)
class Property:
    """A predicate's objects: the field they are in and their datatype."""

    field: str
    datatype: str


@dataclass(frozen=True)
class JsonMapping:
    """How a JSON object becomes RDF, and which field says when it happened (milliseconds since the epoch)."""

    subject: Template
    time: str
    properties: Mapping[str, Property] = field(default_factory=dict)

    def column(self, predicate: str) -> str:
        """Return the name of the column that holds a predicate's objects."""
        return column_of(self.properties, predicate)

    @property
    def schema(self) -> pa.Schema:
        """The columns of decoded batches: time, subject (an N-Triples IRI), one per predicate, the fault."""
        return schema_of(self.properties)

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of lines, each a JSON object in the column ``value``."""
        return self.decode(batch.column("value"))

    def decode(self, lines: pa.BinaryArray) -> pa.RecordBatch:
        """Return lines, each a JSON object, as columns.

        A line that cannot be used becomes a row of nulls whose column ``bad`` says why; empty
        lines are passed over. A property that an object lacks is null.
        """
        for subject in (pa.string(), pa.int64()):
            try:
                return self._map(self._parse(lines, subject))
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                continue
        return self._map(self._parse_singly(lines))

    def _fields(self) -> dict[str, pa.DataType]:
        fields = {each.field: DATATYPES[each.datatype] for each in self.properties.values()}
        return {**fields, self.subject.field: pa.string(), self.time: pa.int64()}

    def _parse(self, lines: pa.BinaryArray, subject: pa.DataType) -> pa.Table:
        """Parse all lines at once, the subject's field as given; ArrowInvalid when any line is not as declared."""
        fields = {**self._fields(), self.subject.field: subject}
        text = lines.cast(pa.string())
        if not _all_objects(text):
            text = pc.ascii_trim_whitespace(text)
            text = text.filter(pc.not_equal(text, ""))
        if not _all_objects(text):
            raise pa.ArrowInvalid("a line is not an object")
        if not len(text):
            return pa.table({name: pa.array([], type_) for name, type_ in fields.items()})
        data = pc.binary_join(pa.ListArray.from_arrays([0, len(text)], text), "\n")[0].as_buffer()
        options = pj.ParseOptions(explicit_schema=pa.schema(fields.items()), unexpected_field_behavior="ignore")
        table = pj.read_json(pa.BufferReader(data), pj.ReadOptions(block_size=len(data) + 1), options)
        if len(table) != len(text):
            raise pa.ArrowInvalid("a line holds more than one object")
        for name, type_ in fields.items():
            if type_ == pa.float64() and not pc.all(pc.is_finite(table[name]), min_count=0).as_py():
                raise pa.ArrowInvalid("a number is not finite")
        return table.combine_chunks()

    def _parse_singly(self, lines: pa.BinaryArray) -> pa.Table:
        """Parse line by line, so that one bad line costs only itself."""
        fields = self._fields()
        rows = [_parse_line(line, fields, self.subject.field) for line in lines.to_pylist() if line.strip()]
        columns = {name: pa.array([row.get(name) for row in rows], type_) for name, type_ in fields.items()}
        return pa.table({**columns, FAULT: pa.array([row.get(FAULT) for row in rows], pa.string())})

    def _map(self, records: pa.Table) -> pa.RecordBatch:
        return items(records, self.subject, self.time, self.properties)


def column_of(properties: Mapping[str, Property], predicate: str) -> str:
    """Return the name of the column that holds a predicate's objects."""
    return f"p{list(properties).index(predicate)}"


def schema_of(properties: Mapping[str, Property]) -> pa.Schema:
    """Return the columns of decoded batches."""
    coded = pa.dictionary(pa.int32(), pa.string())
    objects = [
        (column_of(properties, iri), coded if each.datatype == IRI else DATATYPES[each.datatype])
        for iri, each in properties.items()
    ]
    return pa.schema([(TIME, pa.int64()), (SUBJECT, pa.string()), *objects, (BAD, pa.string())])


def items(records: pa.Table, subject: Template, time: str, properties: Mapping[str, Property]) -> pa.RecordBatch:
    """Return records given by their fields, each of the type that its use asks for, as items.

    The column :data:`FAULT`, if there is one, says which records are bad before anything is looked at.
    """
    names, times = records[subject.field], records[time]
    bad = records[FAULT] if FAULT in records.column_names else pa.nulls(len(records), pa.string())
    iris = {each.field: _distinct(records[each.field]) for each in properties.values() if each.datatype == IRI}
    for good, reason in (
        (pc.is_valid(times), f'no time in the field "{time}"'),
        (pc.fill_null(is_time(times), True), f'the field "{time}" is not a time in milliseconds'),
        (pc.is_valid(names), f'no subject in the field "{subject.field}"'),
        (_make_iris(names, subject), f'the field "{subject.field}" does not fit into an IRI'),
        *((_all_iris(values), f'the field "{name}" is not an IRI') for name, values in iris.items()),
    ):
        if not _all(good):
            bad = pc.if_else(pc.or_(good, pc.is_valid(bad)), bad, reason)
    names = names.cast(pa.string())
    terms = pc.binary_join_element_wise(f"<{subject.prefix}", names, f"{subject.suffix}>", "")
    objects = [
        _terms(iris[each.field]) if each.datatype == IRI else records[each.field] for each in properties.values()
    ]
    columns = [_single(column) for column in (times, terms, *objects)]
    bad = _single(bad)
    if bad.null_count < len(bad):
        columns = [_hidden(column, bad) for column in columns]
    return pa.RecordBatch.from_arrays([*columns, bad], schema=schema_of(properties))


def _distinct(values: pa.ChunkedArray) -> pa.DictionaryArray:
    """Return a column with each of its values but once: what is to be looked at, and written, is that."""
    values = _single(values)
    return values if pa.types.is_dictionary(values.type) else values.dictionary_encode()


def _all_iris(values: pa.DictionaryArray) -> pa.BooleanArray:
    """Say which values are IRIs; nulls are none that is wrong."""
    good = _is_iri(values.dictionary)
    if _all(good):
        return pa.repeat(True, len(values))
    return pc.fill_null(good.take(values.indices), True)


def _terms(values: pa.DictionaryArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(values.indices, _objects(values.dictionary, IRI))


def _make_iris(names: pa.ChunkedArray, subject: Template) -> pa.BooleanArray:
    """Say which names make IRIs; nulls are none that is wrong, and numbers always do."""
    if pa.types.is_integer(names.type):
        return pa.repeat(bool(subject.prefix), len(names)) if subject.prefix else pc.is_null(names)
    fit = pc.match_substring_regex(names, _FIT_FOR_IRI if subject.prefix else WHOLE_IRI)
    return pc.fill_null(fit, True)


def _all(good: pa.BooleanArray) -> bool:
    return bool(pc.all(good, min_count=0).as_py())


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _hidden(column: pa.Array, bad: pa.StringArray) -> pa.Array:
    """Return a column with nulls where something is bad."""
    rows = pa.array(np.arange(len(column)), mask=pc.is_valid(bad).to_numpy(zero_copy_only=False))
    return column.take(rows)


def is_time(times: pa.Array) -> pa.Array:
    """Say which milliseconds since the epoch are in the years 1 to 9999."""
    return pc.and_(pc.greater_equal(times, EARLIEST_MS), pc.less_equal(times, LATEST_MS))


def _is_iri(texts: pa.Array) -> pa.Array:
    return pc.match_substring_regex(texts, WHOLE_IRI)


def _objects(values: pa.Array, datatype: str) -> pa.Array:
    return pc.binary_join_element_wise("<", values, ">", "") if datatype == IRI else values


def count_faults(batches: Iterable[pa.RecordBatch]) -> dict[str, int]:
    """Return how many rows have each fault."""
    counts: dict[str, int] = {}
    for batch in batches:
        for pair in pc.value_counts(batch.column(BAD).drop_null()).to_pylist():
            counts[pair["values"]] = counts.get(pair["values"], 0) + pair["counts"]
    return counts


def _all_objects(text: pa.StringArray) -> bool:
    """Say whether all lines begin and end as objects do.

    Between two objects stands then nothing but a line break, and no value can hold one: as many
    objects as lines means one on each.
    """
    return bool(pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}")), min_count=0).as_py())


def _parse_line(line: bytes, fields: Mapping[str, pa.DataType], subject: str) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"), parse_constant=_refuse)
    except UnicodeDecodeError:
        return {FAULT: "not UTF-8"}
    except (ValueError, RecursionError):
        return {FAULT: "not JSON"}
    if not isinstance(record, dict):
        return {FAULT: "not a JSON object"}
    row: dict[str, Any] = {}
    for name, type_ in fields.items():
        value = record.get(name)
        if name == subject and isinstance(value, int) and not isinstance(value, bool):
            value = str(value)
        if value is not None and not _fits(value, type_):
            return {FAULT: f'the field "{name}" is not {NAMES[type_]}'}
        row[name] = float(value) if type_ == pa.float64() and value is not None else value
    return row


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _fits(value: Any, type_: pa.DataType) -> bool:
    if type_ == pa.string():
        # JSON's escapes can write half a character, which no text can hold.
        return isinstance(value, str) and not any("\ud800" <= character <= "\udfff" for character in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if type_ == pa.float64():
        return abs(value) <= sys.float_info.max
    return isinstance(value, int) and -(2**63) <= value < 2**63


NAMES = {pa.string(): "a string", pa.int64(): "a whole number", pa.float64(): "a number"}
