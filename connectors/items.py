"""Items of records: their fields as subject, time and objects, checked column by column."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted
from connectors.coded import coded, uncoded
from connectors.fields import FAULT, ROW
from connectors.instants import LATEST_MS, is_time, milliseconds
from connectors.iris import are_iris, in_template, make_iris
from connectors.lexical import INTEGERS, XSD
from connectors.number_texts import finite_numbers, whole_numbers
from connectors.objects import named, with_languages
from connectors.properties import (
    ARRIVAL,
    DATATYPES,
    IRI,
    SUBJECT,
    Property,
    Template,
    TermProperty,
)
from connectors.row_origins import ARRIVED, origins_of
from connectors.scalars import (
    BARE,
    NUMBER,
    SCALAR,
    TEXT,
    names_of,
    of_kinds,
    scalars_of,
    times_of,
)
from connectors.subjects import subject_field

if TYPE_CHECKING:
    from connectors.mapping import FieldMapping

_TIME_NAMES = {
    "milliseconds": "a time in milliseconds",
    "seconds": "a time in seconds",
    "dateTime": "an xsd:dateTime",
}
_FLOAT = XSD + "float"

Note = Callable[[pa.BooleanArray, str], None]
"""Function that notes a fault for the values that are not good."""


class _Several(NamedTuple):
    """The objects of records that may have several: each with its record, in ascending order."""

    record: npt.NDArray[np.int64]
    values: pa.Array


class Items:
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
        """Return the items, one row each, and one more for each further object."""
        times, subjects = self._times(), self._subjects()
        objects = [self._objects(each) for each in self._mapping.properties.values()]
        bad = _single(self._bad)
        schema = self._schema(subjects)
        if any(isinstance(each, _Several) for each in objects):
            columns = _unfolded([_single(times), _single(subjects)], objects, bad, self._rows)
            return pa.RecordBatch.from_arrays(columns, schema=schema)
        columns = [_single(column) for column in (times, subjects, *objects)]
        if bad.null_count < len(bad):
            columns = [_hidden(column, bad) for column in columns]
        return pa.RecordBatch.from_arrays([*columns, bad, self._rows], schema=schema)

    def _schema(self, subjects: pa.Array) -> pa.Schema:
        schema, template = self._mapping.schema, self._mapping.subject
        field = subject_field(subjects, template.prefix, template.suffix)
        return schema.set(schema.get_field_index(SUBJECT), field)

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
        said = _single(written)
        said = times_of(said, written_as) if said.type == SCALAR else said
        times = _READ_AS[written_as](said)
        self._note(pc.or_(pc.is_null(written), pc.is_valid(times)), _no_time(name, written_as))
        self._note(
            pc.fill_null(is_time(times), True),
            f'the time in the field "{name}" is not in the years 1 to 9999',
        )
        return times

    def _subjects(self) -> pa.Array:
        """Return the subjects' names."""
        subject = self._mapping.subject
        if not subject.field:
            return _own_names(self._source).take(self._rows)
        written = _single(self._fields[subject.field])
        self._note(pc.is_valid(written), f'no subject in the field "{subject.field}"')
        if pa.types.is_integer(written.type):
            names = written
        else:
            names = names_of(written) if written.type == SCALAR else coded(written)
        if written.type == SCALAR:
            fit = pc.or_(pc.is_null(written), pc.is_valid(names))
            self._note(fit, f'the field "{subject.field}" is not a string')
        _note_unfit(names, subject.field, subject, self._note)
        return names

    # Objects --------------------------------------------------------------------------------------

    def _objects(self, about: Property) -> pa.Array | _Several:
        if isinstance(about, TermProperty) and about.constant is not None:
            indices = pa.array(np.zeros(len(self._rows), np.int32))
            return pa.DictionaryArray.from_arrays(indices, pa.array([about.constant]))
        values = self._fields[about.field]
        if not pa.types.is_list(values.type):
            return self._read(about, _single(values), self._note, None)
        return self._several(about, _single(values))

    def _several(self, about: Property, lists: pa.ListArray) -> _Several:
        """Return the objects in lists; more than one is a fault where records have but one."""
        flat = lists.flatten()
        lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
        record = np.repeat(np.arange(len(lists)), lengths)
        if flat.null_count:
            record = record[flat.is_valid().to_numpy(zero_copy_only=False)]
            flat = flat.drop_null()

        def note(good: pa.BooleanArray, reason: str) -> None:
            of_records = np.ones(len(lists), np.bool_)
            of_records[record[~good.to_numpy(zero_copy_only=False)]] = False
            self._note(pa.array(of_records), reason)

        if not self._mapping.several:
            again = np.concatenate([[False], record[1:] == record[:-1]])[: len(record)]
            reason = f'more than one value in the field "{about.field}" needs arrivals = "all"'
            note(pa.array(~again), reason)
        return _Several(record, _single(self._read(about, flat, note, record)))

    def _read(
        self, about: Property, values: pa.Array, note: Note, record: npt.NDArray[np.int64] | None
    ) -> pa.Array:
        """Return values as objects, each with its record if that is not its own place."""
        if isinstance(about, TermProperty):
            return self._terms(about, scalars_of(values), note, record)
        if values.type == SCALAR:
            values = _of_scalars(about, values, note)
        if about.datatype == IRI:
            names = coded(values if about.template is not None else _texts(values))
            return _iris(names, about.field, about.template, note)
        if DATATYPES[about.datatype] == pa.string():
            return uncoded(_texts(values))
        return _numbers(about, values, note)

    def _terms(
        self,
        about: TermProperty,
        values: pa.DictionaryArray,
        note: Note,
        record: npt.NDArray[np.int64] | None,
    ) -> pa.DictionaryArray:
        """Return values as terms, each distinct one checked and written once."""
        each = about.objects.terms(values.dictionary)
        unfit = pc.and_(pc.is_null(each), pc.is_valid(values.dictionary))
        reason = f'the field "{about.field}" is not {about.objects.words}'
        note(_of_each(pc.invert(unfit), values), reason)
        terms = pa.DictionaryArray.from_arrays(values.indices, each)
        name = about.objects.language_field
        if name is None:
            return terms
        languages = scalars_of(_single(self._fields[name]))
        if record is not None:
            languages = languages.take(pa.array(record))
        tagged, good = with_languages(terms, languages)
        note(good, f'the field "{name}" is not a language')
        return tagged.dictionary_encode()


def _unfolded(
    own: list[pa.Array],
    objects: list[pa.Array | _Several],
    bad: pa.StringArray,
    rows: pa.Int32Array,
) -> list[pa.Array]:
    """Return the columns of records with a row for each further object; a bad record has one."""
    good = bad.is_null().to_numpy(zero_copy_only=False)
    sizes = np.ones(len(bad), np.int64)
    for each in objects:
        if isinstance(each, _Several):
            sizes = np.maximum(sizes, np.bincount(each.record, minlength=len(bad)))
    sizes[~good] = 1
    record = np.repeat(np.arange(len(bad)), sizes)
    first = np.cumsum(sizes) - sizes
    hidden = ~good[record]
    is_further = np.ones(len(record), np.bool_)
    is_further[first] = False
    columns = [each.take(pa.array(record, mask=hidden)) for each in own]
    for each in objects:
        if isinstance(each, _Several):
            places = np.zeros(len(record), np.int64)
            missing = np.ones(len(record), np.bool_)
            kept = np.flatnonzero(good[each.record])
            number = np.arange(len(each.record)) - np.searchsorted(each.record, each.record)
            at = first[each.record[kept]] + number[kept]
            places[at], missing[at] = kept, False
            columns.append(each.values.take(pa.array(places, mask=missing)))
        else:
            columns.append(_single(each).take(pa.array(record, mask=hidden | is_further)))
    taken = pa.array(record)
    return [*columns, bad.take(taken), rows.take(taken)]


def _iris(
    names: pa.DictionaryArray, field: str, template: Template | None, note: Note
) -> pa.DictionaryArray:
    """Return names as IRIs, each distinct one checked and written once."""
    each = names.dictionary
    if template is None:
        note(_of_each(are_iris(each), names), f'the field "{field}" is not an IRI')
        return _recoded(names, in_template(each, "", ""))
    _note_unfit(names, field, template, note)
    terms = in_template(each.cast(pa.string()), template.prefix, template.suffix)
    return _recoded(names, terms)


def _note_unfit(names: pa.Array, field: str, template: Template, note: Note) -> None:
    """Note a fault for each name that makes no IRI; each distinct one is checked once."""
    good = (
        _of_each(make_iris(names.dictionary, template.prefix), names)
        if pa.types.is_dictionary(names.type)
        else make_iris(names, template.prefix)
    )
    note(good, f'the field "{field}" does not fit into an IRI')


def _texts(values: pa.Array) -> pa.Array:
    """Return values of which integers have become texts, each distinct one once."""
    if not pa.types.is_integer(values.type):
        return values
    each = coded(values)
    return _recoded(each, each.dictionary.cast(pa.string()))


def _of_scalars(about: Property, scalars: pa.DictionaryArray, note: Note) -> pa.Array:
    """Return values of a field with several uses as the type that this one needs."""
    each, type_ = scalars.dictionary, DATATYPES[about.datatype]
    if about.template is not None:
        found = names_of(scalars).dictionary
    elif type_ == pa.string():
        found = of_kinds(each, TEXT + BARE)
    else:
        read = whole_numbers if type_ == pa.int64() else finite_numbers
        found = read(of_kinds(each, NUMBER + BARE))
    values = pa.DictionaryArray.from_arrays(scalars.indices, found)
    fit = _of_each(pc.or_(pc.is_valid(found), pc.is_null(each)), scalars)
    note(fit, f'the field "{about.field}" is not {_words(about)}')
    return values if pa.types.is_string(found.type) else found.take(scalars.indices)


def _words(about: Property) -> str:
    return named(about.datatype)


def _numbers(about: Property, values: pa.Array, note: Note) -> pa.Array:
    """Return numbers as those of a datatype with less room than its column."""
    if about.datatype == _FLOAT:
        values = values.cast(pa.float32(), safe=False).cast(pa.float64())
        good = pc.is_finite(values)
    elif about.datatype != XSD + "integer" and about.datatype in INTEGERS:
        least, most = INTEGERS[about.datatype]
        good = pc.and_(pc.greater_equal(values, least), pc.less_equal(values, most))
    else:
        return values
    note(pc.fill_null(good, True), f'the field "{about.field}" is not {_words(about)}')
    return values


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


def _of_each(good: pa.BooleanArray, names: pa.DictionaryArray) -> pa.BooleanArray:
    """Return for each value the verdict on its distinct value; nulls are good."""
    if _all(good):
        return pa.repeat(True, len(names))
    return pc.fill_null(good.take(names.indices), True)


def _recoded(names: pa.DictionaryArray, terms: pa.StringArray) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(names.indices, terms)


def _all(good: pa.BooleanArray) -> bool:
    return bool(pc.all(good, min_count=0).as_py())


def _single(column: pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _hidden(column: pa.Array, bad: pa.StringArray) -> pa.Array:
    """Return a column with nulls in the bad rows."""
    rows = pa.array(np.arange(len(column)), mask=pc.is_valid(bad).to_numpy(zero_copy_only=False))
    return column.take(rows)
