"""Parser from lines of JSON to columns of fields: all at once, or one by one if a line misfits."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from connectors.fields import FAULT, NOT_UTF8, ROW, misfit, path_of
from connectors.json_types import fits, refuse_constant

_MOST_NAMES = 3
"""Maximum number of fields, texts or integers, for which all combinations of types are tried."""

Fields = Mapping[str, pa.DataType]


def parse(lines: pa.BinaryArray, fields: Fields, names: Collection[str]) -> pa.Table:
    """Return the fields of lines that are JSON objects, each in its type.

    The fields in ``names`` may also be integers. An unusable line has a fault in the column
    :data:`~connectors.fields.FAULT`; empty lines are skipped. The column
    :data:`~connectors.fields.ROW` has the index of each line. A field that an object lacks is null.
    """
    lines = pc.fill_null(lines, b"")
    try:
        text, rows = _objects(lines)
    except pa.ArrowInvalid:
        return _parse_singly(lines, fields, names)
    varying = sorted(set(names) & set(fields))[:_MOST_NAMES]
    for types in itertools.product((pa.string(), pa.int64()), repeat=len(varying)):
        try:
            table = _parse_at_once(text, {**fields, **dict(zip(varying, types, strict=True))})
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            continue
        return table.append_column(ROW, rows)
    return _parse_singly(lines, fields, names)


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
    columns = {name: _at(table.combine_chunks(), path_of(name)) for name in fields}
    for name, type_ in fields.items():
        if type_ == pa.float64() and not pc.all(pc.is_finite(columns[name]), min_count=0).as_py():
            raise pa.ArrowInvalid("a number is not finite")
    return pa.table(columns)


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


def _parse_singly(lines: pa.BinaryArray, fields: Fields, names: Collection[str]) -> pa.Table:
    """Parse line by line, so that a bad line costs only itself."""
    parsed = [
        (at, _parse_line(line, fields, names))
        for at, line in enumerate(lines.to_pylist())
        if line.strip()
    ]
    types = {**fields, FAULT: pa.string()}
    columns = {
        name: pa.array([row.get(name) for _, row in parsed], type_) for name, type_ in types.items()
    }
    return pa.table({**columns, ROW: pa.array([at for at, _ in parsed], pa.int32())})


def _all_objects(text: pa.StringArray) -> bool:
    """Return True if every line begins and ends like an object.

    Then only line breaks stand between objects, and no value can contain one. As many objects as
    lines means one object per line.
    """
    return bool(
        pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}")), min_count=0).as_py()
    )


def _parse_line(line: bytes, fields: Fields, names: Collection[str]) -> dict[str, Any]:
    try:
        record = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
    except UnicodeDecodeError:
        return {FAULT: NOT_UTF8}
    except (ValueError, RecursionError):
        return {FAULT: "not JSON"}
    if not isinstance(record, dict):
        return {FAULT: "not a JSON object"}
    row: dict[str, Any] = {}
    for name, type_ in fields.items():
        try:
            value = _value_at(record, path_of(name))
        except TypeError:
            return {FAULT: misfit(name, type_)}
        if name in names and isinstance(value, int) and not isinstance(value, bool):
            value = _digits(value)
        if value is not None and not fits(value, type_):
            return {FAULT: misfit(name, type_)}
        row[name] = float(value) if type_ == pa.float64() and value is not None else value
    return row


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
