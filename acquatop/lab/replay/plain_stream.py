"""Plain form of a recorded stream: a file with a time, a subject and a value in each row."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
from pyarrow import parquet

from acquatop.errors import UserError
from connectors.contract import RecordDecoder
from connectors.fields import ROW
from connectors.mapping import BAD, DATATYPES, IRI, FieldMapping, Property
from replica.remotes.records import KeyTemplate

COLUMNS = ("time_ms", "subject", "value")
"""Columns of both plain files."""

NUMBER = "row"
"""Mapping field of a row's number: with it in the subject's template each event is a node."""

_SUFFIXES = (".csv", ".parquet")
_WHOLE, _NUMBER = r"^[+-]?[0-9]{1,18}$", r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"


@dataclass(frozen=True)
class PlainFile:
    """A file's columns: whole times, and subjects and values. Row 0 is line 2 of a CSV file."""

    path: Path
    times: pa.Array
    subjects: pa.Array
    values: pa.Array

    @property
    def repeated(self) -> int:
        """Number of rows that equal an earlier one."""
        rows = pa.table([self.times, self.subjects, self.values], names=list(COLUMNS))
        return len(rows) - len(rows.group_by(list(COLUMNS)).aggregate([]))

    def place(self, row: int) -> str:
        """Return a row's place for messages."""
        return (
            f"{self.path}:{row + 2}"
            if self.path.suffix == ".csv"
            else f"{self.path}, row {row + 1}"
        )


def find_plain(folder: Path, name: str) -> Path | None:
    """Return a folder's plain file with a name; None if there is none.

    A Parquet file with other columns is not plain; a CSV file with this name must be.
    """
    found = [
        folder / f"{name}{suffix}" for suffix in _SUFFIXES if (folder / f"{name}{suffix}").is_file()
    ]
    if len(found) > 1:
        raise UserError(
            f"{folder} has both {found[0].name} and {found[1].name}\n  hint: keep one of them"
        )
    if not found:
        return None
    names = _names(found[0])
    if sorted(names) == sorted(COLUMNS):
        return found[0]
    if found[0].suffix == ".parquet":
        return None
    hint = f"the first line of a plain file is {','.join(COLUMNS)}"
    raise UserError(
        f"{found[0]} has the columns {', '.join(names) or 'of an empty file'}\n  hint: {hint}"
    )


def _names(path: Path) -> list[str]:
    if path.suffix == ".parquet":
        return list(parquet.read_schema(path).names)
    with path.open(newline="", encoding="utf-8-sig") as file:
        return next(csv.reader(file), [])


def read_plain(path: Path) -> PlainFile:
    """Read a plain file; :class:`UserError` names the first row that cannot be used."""
    try:
        table = (
            _read_csv(path)
            if path.suffix == ".csv"
            else parquet.read_table(path, columns=list(COLUMNS))
        )
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read: {str(error).partition(chr(10))[0]}") from None
    times, subjects, values = (_one(table[name]) for name in COLUMNS)
    file = PlainFile(path, times, subjects, values)
    times = cast(file, times, pa.int64(), "time_ms is not in whole milliseconds since the epoch")
    subjects = subjects.cast(pa.string())
    _refuse(file, pc.fill_null(pc.equal(subjects, ""), True), "there is no subject")
    return PlainFile(path, times, subjects, values)


def _read_csv(path: Path) -> pa.Table:
    convert = pacsv.ConvertOptions(
        include_columns=list(COLUMNS),
        column_types=dict.fromkeys(COLUMNS, pa.string()),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
        null_values=[""],
    )
    return pacsv.read_csv(path, convert_options=convert)


def records_of(
    file: PlainFile, mapping: RecordDecoder, used: frozenset[str], keys: KeyTemplate | None
) -> pa.Table:
    """Return a stream's rows as decoded records, in the rows' order.

    A mapping's field ``row`` is the row's number, ``subject`` the subject and ``value`` the value.
    With other names, the subject's template takes the subject, the time the time, and a property
    the value. A template without a field takes the row's number too. Only the properties ``used``
    are filled. A subject that must be an IRI and is none is converted by the property's template,
    or else by ``keys``. Raise :class:`UserError` for the first row that does not fit.
    """
    if not isinstance(mapping, FieldMapping):
        hint = "describe it by subject, time and properties in the catalog"
        raise UserError(
            f"{file.path} has columns, but its stream is mapped from statements\n  hint: {hint}"
        )
    is_numbered = mapping.subject.field in ("", NUMBER)
    subject = replace(
        mapping.subject, field="the row's number" if is_numbered else mapping.subject.field
    )
    columns: dict[str, pa.Array] = {
        "time_ms": file.times,
        ROW: pa.array(np.arange(len(file.times), dtype=np.int32)),
    }
    columns[subject.field] = _numbers(file) if is_numbered else file.subjects
    for iri, each in mapping.properties.items():
        if iri not in used:
            columns.setdefault(each.field, pa.nulls(len(file.times), DATATYPES[each.datatype]))
        else:
            columns[each.field] = _objects(file, each, keys)
    # The IRIs have already been made here.
    properties = {iri: replace(each, template=None) for iri, each in mapping.properties.items()}
    plain = replace(
        mapping, subject=subject, time="time_ms", time_as="milliseconds", properties=properties
    )
    table = pa.table(columns)
    records = pa.Table.from_batches([plain.items(table, pa.record_batch({"value": file.subjects}))])
    bad = records.column(BAD).combine_chunks()
    if bad.null_count < len(bad):
        row = int(np.flatnonzero(np.asarray(pc.is_valid(bad).to_numpy(zero_copy_only=False)))[0])
        raise UserError(f"{file.place(row)}: {bad[row].as_py()}")
    return records


def _objects(file: PlainFile, about: Property, keys: KeyTemplate | None) -> pa.Array:
    if about.field != "subject":
        return cast(file, file.values, DATATYPES[about.datatype])
    if about.datatype != IRI:
        return cast(file, file.subjects, DATATYPES[about.datatype])
    own = about.template
    return as_iris(file, keys if own is None else KeyTemplate(own.prefix, "subject", own.suffix))


def _numbers(file: PlainFile) -> pa.Array:
    return pa.array(range(1, len(file.times) + 1), pa.int64()).cast(pa.string())


def as_iris(file: PlainFile, keys: KeyTemplate | None) -> pa.Array:
    """Return a file's subjects as IRIs: unchanged, or made by a template if they are plain ids."""
    distinct = file.subjects.dictionary_encode()
    made = [each if is_iri(each) else _made(each, keys) for each in distinct.dictionary.to_pylist()]
    if None in made:
        at = made.index(None)
        row = pc.index(file.subjects, distinct.dictionary[at]).as_py()
        hint = "write IRIs, or give the service a mapping whose key says what an id's IRI is"
        raise UserError(
            f'{file.place(row)}: no IRI can be made of "{distinct.dictionary[at]}"\n  hint: {hint}'
        )
    return pa.array(made, pa.string()).take(distinct.indices)


def _made(id_: str, keys: KeyTemplate | None) -> str | None:
    term = None if keys is None or not keys.prefix else keys.term(id_)
    return None if term is None else term[1:-1]


def is_iri(text: str) -> bool:
    """Return true if a subject is a whole IRI, not an id: it has ``urn:`` or ``://``.

    >>> is_iri("http://example.org/ann"), is_iri("urn:ann"), is_iri("line:4")
    (True, True, False)
    """
    return text.startswith("urn:") or "://" in text


def cast(
    file: PlainFile, values: pa.Array, type_: pa.DataType, fault: str | None = None
) -> pa.Array:
    """Return a column as another type; :class:`UserError` names the first row that does not fit."""
    if pa.types.is_timestamp(values.type) and type_ == pa.int64():
        values = values.cast(pa.timestamp("ms", values.type.tz), safe=False).cast(pa.int64())
    name = {pa.int64(): "a whole number", pa.float64(): "a number"}.get(type_, "a text")
    fault = fault or f"the value is not {name}"
    _refuse(file, pc.is_null(values), fault)
    if pa.types.is_string(values.type) and type_ != pa.string():
        pattern = _WHOLE if type_ == pa.int64() else _NUMBER
        _refuse(file, pc.invert(pc.match_substring_regex(values, pattern)), fault)
        # Arrow accepts no sign but a minus.
        values = pc.replace_substring_regex(values, r"^\+", "")
    try:
        made = values.cast(type_)
    except pa.ArrowInvalid as error:
        raise UserError(f"{file.path}: {fault}: {error}") from None
    if type_ == pa.float64():
        _refuse(file, pc.invert(pc.is_finite(made)), fault)
    return made


def _refuse(file: PlainFile, wrong: pa.Array, fault: str) -> None:
    rows = np.flatnonzero(np.asarray(wrong.to_numpy(zero_copy_only=False), dtype=np.bool_))
    if len(rows):
        others = f" (and in {len(rows) - 1:,} other rows)" if len(rows) > 1 else ""
        raise UserError(f"{file.place(int(rows[0]))}: {fault}{others}")


def _one(column: pa.ChunkedArray) -> pa.Array:
    combined = column.combine_chunks()
    combined = (
        pa.concat_arrays(combined.chunks) if isinstance(combined, pa.ChunkedArray) else combined
    )
    return combined.cast(pa.string()) if pa.types.is_large_string(combined.type) else combined


def whole_or_double(file: PlainFile) -> str:
    """Return the XSD datatype of all values: ``integer`` if all are whole, else ``double``."""
    values = file.values.drop_null()
    if pa.types.is_string(values.type):
        are_whole = bool(pc.all(pc.match_substring_regex(values, _WHOLE), min_count=0).as_py())
    else:
        are_whole = pa.types.is_integer(values.type)
    return "integer" if are_whole else "double"
