"""Parser from lines of JSON, each with a post, to columns of the wanted fields."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from connectors.fields import FAULT, NOT_UTF8, ROW, misfit
from connectors.json_types import fits, refuse_constant
from connectors.x_api.fields import POST

NOT_JSON, NOT_A_POST = "not JSON", "not a post"
_AT_ONCE = 1024
"""Maximum number of lines parsed one by one if one of them cannot be parsed with the others."""


class LineParser:
    """Parser of JSON lines by a schema: all at once, or one by one in parts with a misfit."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def parse(self, lines: pa.BinaryArray) -> pa.Table:
        """Return the lines' fields, with the faults of unreadable lines in the column ``FAULT``.

        Blank lines are skipped; the column ``ROW`` has the index of each remaining line.
        """
        kept = np.flatnonzero(pc.fill_null(pc.match_substring_regex(lines, r"\S"), False))
        return self._parse(lines.take(pa.array(kept))).append_column(
            ROW, pa.array(kept, pa.int32())
        )

    def _parse(self, lines: pa.BinaryArray) -> pa.Table:
        table = self._together(lines)
        if table is not None:
            return table
        if len(lines) <= _AT_ONCE:
            return self._singly(lines)
        pieces = (lines[start : start + _AT_ONCE] for start in range(0, len(lines), _AT_ONCE))
        return pa.concat_tables(map(self._parse, pieces))

    def _together(self, lines: pa.BinaryArray) -> pa.Table | None:
        """Parse all lines at once; None if one is not a post, or has a field of another type."""
        try:
            text = pc.ascii_trim_whitespace(lines.cast(pa.string()))
            # Then only line breaks stand between objects: as many objects as lines means one object
            # per line.
            whole = pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))
            if not pc.all(whole, min_count=0).as_py():
                return None
            table = self._read(text)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None
        if len(table) != len(text) or table.column(POST).null_count or not _is_finite(table):
            return None
        return table.append_column(FAULT, pa.nulls(len(table), pa.string()))

    def _read(self, text: pa.StringArray) -> pa.Table:
        if not len(text):
            return self._schema.empty_table()
        data = pc.binary_join(pa.ListArray.from_arrays([0, len(text)], text), "\n")[0].as_buffer()
        options = pj.ParseOptions(explicit_schema=self._schema, unexpected_field_behavior="ignore")
        # A single thread: the executors' cores each have a partition already.
        reading = pj.ReadOptions(use_threads=False, block_size=len(data) + 1)
        return pj.read_json(pa.BufferReader(data), reading, options)

    def _singly(self, lines: pa.BinaryArray) -> pa.Table:
        rows = [self._row(line) for line in lines.to_pylist()]
        schema = self._schema.append(pa.field(FAULT, pa.string()))
        return pa.Table.from_pylist(rows, schema)

    def _row(self, line: bytes) -> Mapping[str, Any]:
        try:
            record = json.loads(line.decode("utf-8"), parse_constant=refuse_constant)
        except UnicodeDecodeError:
            return {FAULT: NOT_UTF8}
        except (ValueError, RecursionError):
            return {FAULT: NOT_JSON}
        if not isinstance(record, dict) or not isinstance(record.get(POST), dict):
            return {FAULT: NOT_A_POST}
        try:
            return {
                each.name: _fitting(record.get(each.name), each.type, each.name)
                for each in self._schema
            }
        except _MisfitError as error:
            return {FAULT: str(error)}


class _MisfitError(Exception):
    """Error: a field's value does not have the type that its use needs."""


def _fitting(value: Any, type_: pa.DataType, name: str) -> Any:
    """Return the part of a JSON value that fits a type; integers are also texts."""
    if value is None:
        return None
    if pa.types.is_struct(type_):
        _check(isinstance(value, dict), f'the field "{_shown(name)}" is not an object')
        return {
            each.name: _fitting(value.get(each.name), each.type, f"{name}.{each.name}")
            for each in type_
        }
    if pa.types.is_list(type_):
        _check(isinstance(value, list), f'the field "{_shown(name)}" is not a list')
        return [_fitting(each, type_.value_type, name) for each in value]
    if type_ == pa.string() and isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    _check(fits(value, type_), misfit(_shown(name), type_))
    return float(value) if type_ == pa.float64() else value


def _shown(name: str) -> str:
    return name.removeprefix(f"{POST}.")


def _check(fits: bool, otherwise: str) -> None:
    if not fits:
        raise _MisfitError(otherwise)


def _is_finite(table: pa.Table) -> bool:
    return all(
        pc.all(pc.is_finite(each), min_count=0).as_py()
        for column in table.columns
        for each in _doubles(column)
    )


def _doubles(column: pa.Array | pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield the floating-point arrays in a column, at any depth."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if pa.types.is_struct(column.type):
        for each in column.flatten():
            yield from _doubles(each)
    elif pa.types.is_list(column.type):
        yield from _doubles(column.flatten())
    elif pa.types.is_floating(column.type):
        yield column
