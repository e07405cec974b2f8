"""Parser from lines of JSON to columns of fields: all at once, or one by one if a line misfits."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from connectors.fields import FAULT, NOT_UTF8, ROW, misfit, path_of
from connectors.json_kinds import EXACT, Varying, exact_numbers, groups_of, varying_of
from connectors.json_types import Written, fits, refuse_constant, scalar
from connectors.scalars import SCALAR, lists_of, scalars_of

_MOST_NAMES = 3
"""Maximum number of fields, texts or integers, for which all combinations of types are tried."""

Fields = Mapping[str, pa.DataType]
Numbers = npt.NDArray[np.int64]


class Needed(NamedTuple):
    """The fields to parse, each with its type.

    Those in ``names`` may also be integers. Those in ``lists`` may be lists of their type. Those of
    the type :data:`~connectors.scalars.SCALAR` are most likely of the type in ``likely``.
    """

    fields: Fields
    names: Collection[str]
    lists: Collection[str] = frozenset()
    likely: Fields = MappingProxyType({})

    def varying(self) -> dict[str, Varying]:
        """Return the fields that may be of several kinds."""
        found = {
            name: varying_of(
                type_,
                is_name=name in self.names,
                lists=name in self.lists,
                is_exact=self.likely.get(name) != pa.float64(),
            )
            for name, type_ in self.fields.items()
        }
        return {name: each for name, each in found.items() if each is not None}


def parse(lines: pa.BinaryArray, needed: Needed) -> pa.Table:
    """Return the fields of lines that are JSON objects, each in its type.

    An unusable line has a fault in the column :data:`~connectors.fields.FAULT`; empty lines are
    skipped. The column :data:`~connectors.fields.ROW` has the index of each line. A field that an
    object lacks is null.
    """
    lines = pc.fill_null(lines, b"")
    try:
        text, rows = _objects(lines)
    except pa.ArrowInvalid:
        return _parse_singly(lines, np.arange(len(lines)), needed)
    fields = {**needed.fields, **needed.likely}
    names = sorted(set(needed.names) & set(fields))[:_MOST_NAMES]
    for types in itertools.product((pa.string(), pa.int64()), repeat=len(names)):
        try:
            table = _parse_at_once(text, {**fields, **dict(zip(names, types, strict=True))})
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        return _with_scalars(table, needed).append_column(ROW, rows)
    return _parse_by_kind(lines, text, rows, needed)


def _parse_by_kind(
    lines: pa.BinaryArray, text: pa.StringArray, rows: pa.Int32Array, needed: Needed
) -> pa.Table:
    """Parse the lines with fields of the same kinds together, or one by one if that fails."""
    varying = needed.varying()
    groups = groups_of(text, varying) if varying else None
    if groups is None:
        return _parse_singly(lines, np.arange(len(lines)), needed)
    tables = []
    for at, types in groups:
        places = rows.take(pa.array(at))
        try:
            table = _parse_at_once(text.take(pa.array(at)), {**needed.fields, **types})
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            tables.append(_parse_singly(lines.take(places), places.to_numpy(), needed))
            continue
        faults = pa.nulls(len(at), pa.string())
        table = _with_scalars(table, needed).append_column(FAULT, faults)
        tables.append(table.append_column(ROW, places))
    return _merged(tables, needed)


def _with_scalars(table: pa.Table, needed: Needed) -> pa.Table:
    """Return a table with scalars in the columns that need them."""
    for at, (name, type_) in enumerate(needed.fields.items()):
        if type_ == SCALAR:
            table = table.set_column(at, name, scalars_of(table[name].combine_chunks()))
    return table


def _merged(tables: Sequence[pa.Table], needed: Needed) -> pa.Table:
    """Return tables as one, in the rows' order; a field that is a list in one is one in all."""
    listed = {
        name
        for name in needed.lists
        for table in tables
        if pa.types.is_list(table.schema.field(name).type)
    }
    order = [*needed.fields, FAULT, ROW]
    same = []
    for table in tables:
        columns = {name: table[name].combine_chunks() for name in order}
        for name in needed.names:
            if name in columns and needed.fields[name] == pa.string():
                columns[name] = _texts(columns[name])
        for name in listed:
            columns[name] = _as_lists(columns[name])
        same.append(pa.table(columns))
    whole = pa.concat_tables(same).combine_chunks()
    return whole.take(pc.sort_indices(whole[ROW]))


def _texts(column: pa.Array) -> pa.Array:
    if pa.types.is_list(column.type):
        return lists_of(column, column.flatten().cast(pa.string()))
    return column.cast(pa.string())


def _as_lists(column: pa.Array) -> pa.ListArray:
    """Return a column of values as lists of one; null for null."""
    if pa.types.is_list(column.type):
        return column
    valid = column.is_valid()
    offsets = np.concatenate([[0], np.cumsum(valid.to_numpy(zero_copy_only=False))])
    return pa.ListArray.from_arrays(
        pa.array(offsets.astype(np.int32)), column.drop_null(), mask=pc.invert(valid)
    )


def _objects(lines: pa.BinaryArray) -> tuple[pa.StringArray, pa.Int32Array]:
    """Return the non-empty lines and their indices.

    Raises ArrowInvalid if a line is certainly not an object.
    """
    text = lines.cast(pa.string())
    rows = np.arange(len(text), dtype=np.int32)
    if not _all_objects(text):
        text = pc.ascii_trim_whitespace(text)
        kept = pc.not_equal(text, "")
        text, rows = text.filter(kept), rows[kept.to_numpy(zero_copy_only=False)]
    if not _all_objects(text):
        raise pa.ArrowInvalid("a line is not an object")
    return text, pa.array(rows)


def _parse_at_once(text: pa.StringArray, fields: Fields) -> pa.Table:
    """Parse all lines at once; raise ArrowInvalid if a line is not as declared."""
    if not len(text):
        return pa.table({name: pa.array([], type_) for name, type_ in fields.items()})
    data = pc.binary_join(pa.ListArray.from_arrays([0, len(text)], text), "\n")[0].as_buffer()
    options = pj.ParseOptions(
        explicit_schema=_schema_of(fields), unexpected_field_behavior="ignore"
    )
    table = pj.read_json(pa.BufferReader(data), pj.ReadOptions(block_size=len(data) + 1), options)
    if len(table) != len(text):
        raise pa.ArrowInvalid("a line holds more than one object")
    if EXACT in fields.values() and not exact_numbers(text):
        raise pa.ArrowInvalid("a number has more digits than the type")
    columns = {name: _at(table.combine_chunks(), path_of(name)) for name in fields}
    for name, type_ in fields.items():
        if type_ == pa.float64():
            _check_doubles(columns[name])
    return pa.table(columns)


def _check_doubles(column: pa.Array) -> None:
    """Raise ArrowInvalid for numbers that are not finite, and for -0: written so, it is whole."""
    if not pc.all(pc.is_finite(column), min_count=0).as_py():
        raise pa.ArrowInvalid("a number is not finite")
    numbers = column.to_numpy(zero_copy_only=False)
    if bool((np.signbit(numbers) & (numbers == 0)).any()):
        raise pa.ArrowInvalid("a number may be a whole one")


def _schema_of(fields: Fields) -> pa.Schema:
    """Return the schema of objects with the given fields; nested fields become nested objects."""
    tree: dict[str, Any] = {}
    for name, type_ in fields.items():
        *parents, last = path_of(name)
        place = tree
        for parent in parents:
            place = place.setdefault(parent, {})
        place[last] = type_
    return pa.schema(_types(tree))


def _types(tree: Mapping[str, Any]) -> Sequence[tuple[str, pa.DataType]]:
    return [
        (name, pa.struct(_types(each)) if isinstance(each, dict) else each)
        for name, each in tree.items()
    ]


def _at(table: pa.Table, path: Sequence[str]) -> pa.Array:
    first, *rest = path
    column = (
        table[first].combine_chunks() if isinstance(table[first], pa.ChunkedArray) else table[first]
    )
    return pc.struct_field(column, rest) if rest else column


def _parse_singly(lines: pa.BinaryArray, rows: Numbers, needed: Needed) -> pa.Table:
    """Parse line by line, so that a bad line costs only itself."""
    parsed = [
        (at, _parse_line(line, needed))
        for at, line in zip(rows.tolist(), lines.to_pylist(), strict=True)
        if line.strip()
    ]
    columns = {
        name: _column([row.get(name) for _, row in parsed], type_)
        for name, type_ in {**needed.fields, FAULT: pa.string()}.items()
    }
    return pa.table({**columns, ROW: pa.array([at for at, _ in parsed], pa.int32())})


def _column(values: list[Any], type_: pa.DataType) -> pa.Array:
    """Return values as a column, of lists if one of them is a list."""
    if not any(isinstance(each, list) for each in values):
        return pa.array(values, type_)
    values = [each if each is None or isinstance(each, list) else [each] for each in values]
    if type_ != SCALAR:
        return pa.array(values, pa.list_(type_))
    lists = pa.array(values, pa.list_(pa.string()))
    return lists_of(lists, lists.flatten().dictionary_encode().cast(SCALAR))


def _all_objects(text: pa.StringArray) -> bool:
    """Return True if every line begins and ends like an object.

    Then only line breaks stand between objects, and no value can contain one. As many objects as
    lines means one object per line.
    """
    return bool(
        pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}")), min_count=0).as_py()
    )


def _parse_line(line: bytes, needed: Needed) -> dict[str, Any]:
    try:
        record = json.loads(
            line.decode("utf-8"), parse_float=Written, parse_constant=refuse_constant
        )
    except UnicodeDecodeError:
        return {FAULT: NOT_UTF8}
    except (ValueError, RecursionError):
        return {FAULT: "not JSON"}
    if not isinstance(record, dict):
        return {FAULT: "not a JSON object"}
    row: dict[str, Any] = {}
    for name, type_ in needed.fields.items():
        try:
            row[name] = _read(_value_at(record, path_of(name)), name, type_, needed)
        except TypeError:
            return {FAULT: misfit(name, type_)}
    return row


def _read(value: Any, name: str, type_: pa.DataType, needed: Needed) -> Any:
    """Return a field's value in its type, or a list of such; TypeError if it has another."""
    if isinstance(value, list) and name in needed.lists:
        read = [_read(each, name, type_, needed._replace(lists=())) for each in value]
        return [each for each in read if each is not None]
    if type_ == SCALAR:
        return None if value is None else scalar(value)
    if name in needed.names and isinstance(value, int) and not isinstance(value, bool):
        value = _digits(value)
    if value is None:
        return None
    if not fits(value, type_):
        raise TypeError(name)
    return float(value) if type_ == pa.float64() else value


def _value_at(record: dict[str, Any], path: Sequence[str]) -> Any:
    """Return the value at the end of a path, None if it is missing.

    Raises TypeError if a value on the path is not an object.
    """
    value: Any = record
    for name in path:
        if value is None:
            return None
        if not isinstance(value, dict):
            raise TypeError(name)
        value = value.get(name)
    return value


def _digits(value: int) -> str | None:
    try:
        return str(value)
    except ValueError:  # more digits than Python converts
        return None
