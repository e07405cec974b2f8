"""Rows in columns of all Arrow types that a mapping casts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from random import Random
from typing import Any

import pyarrow as pa

from connectors.mapping import DATATYPES
from tests.support.fuzz.encoding import Sent, fields_mapping
from tests.support.fuzz.items import PROPERTIES, Item
from tests.support.fuzz.times import Moment
from tests.support.fuzz.values import IN_TEMPLATE, XSD, Value

_TYPES: Mapping[str, Sequence[pa.DataType]] = {
    XSD + "integer": (
        *(pa.int64(), pa.int64(), pa.int32(), pa.uint64(), pa.float64(), pa.decimal128(38, 2)),
        *(pa.string(), pa.bool_(), pa.binary(), pa.list_(pa.int64()), pa.null()),
    ),
    XSD + "double": (
        *(pa.float64(), pa.float64(), pa.float32(), pa.int64(), pa.decimal128(38, 10)),
        *(pa.string(), pa.bool_(), pa.struct([("a", pa.float64())])),
    ),
    XSD + "string": (
        *(pa.string(), pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())),
        *(pa.int64(), pa.float64(), pa.binary(), pa.timestamp("us")),
    ),
    XSD + "decimal": (pa.decimal128(38, 10), pa.int64(), pa.string(), pa.float64()),
    XSD + "boolean": (pa.bool_(), pa.string(), pa.int64()),
    **{
        XSD + each: (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
        for each in ("dateTime", "date", "time", "duration")
    },
    XSD + "byte": (pa.int64(), pa.int8(), pa.int16(), pa.string()),
    XSD + "float": (pa.float32(), pa.float64(), pa.string()),
    "iri": (pa.string(), pa.string(), pa.dictionary(pa.int32(), pa.string()), pa.int64()),
    IN_TEMPLATE: (pa.string(), pa.string(), pa.int64(), pa.dictionary(pa.int32(), pa.string())),
}
_TIMES: Mapping[str, Sequence[pa.DataType]] = {
    "milliseconds": (
        *(pa.int64(), pa.int64(), pa.timestamp("ms"), pa.timestamp("us", "UTC"), pa.float64()),
        pa.timestamp("ms", "Asia/Tokyo"),
    ),
    "seconds": (pa.float64(),),
    "dateTime": (pa.string(), pa.large_string()),
}


def columns_mapping(time_as: str) -> str:
    """Return the catalog's part."""
    return fields_mapping("id", f'time = "t"\ntime_as = "{time_as}"\nformat = "columns"')


def table_of(items: Sequence[Item], time_as: str, random: Random) -> tuple[pa.Table, list[Sent]]:
    """Return items as a table, with what their rows say; raw items are rows of nulls."""
    types = {name: random.choice(_TYPES[each]) for name, each in PROPERTIES.items()}
    types["t"] = random.choice(_TIMES[time_as])
    cells: dict[str, list[Any]] = {name: [] for name in types}
    sent = []
    for item in items:
        row = {"t": item.time.sent, **{name: item.values.get(name) for name in PROPERTIES}}
        held = {name: _cell(value, types[name]) for name, value in row.items()}
        for name, cell in held.items():
            cells[name].append(cell)
        sent.append(_as_said(item, held, types))
    columns = {name: pa.array(column, types[name]) for name, column in cells.items()}
    columns["k"] = pa.array([item.number for item in items], pa.int64())
    columns["id"] = pa.array([f"i{item.number}" for item in items], pa.string())
    return pa.table(columns), sent


def _as_said(item: Item, held: Mapping[str, Any], types: Mapping[str, pa.DataType]) -> Sent:
    ms = item.time.ms if held["t"] is not None else None
    values = {
        name: None
        if held[name] is None or value is None
        else _read(value, held[name], types[name], PROPERTIES[name])
        for name, value in item.values.items()
    }
    said = replace(item, raw=None, time=Moment(item.time.sent, ms), values=values)
    return Sent(b"", said, said.verdict if said.values else False)


def _read(value: Value, cell: Any, type_: pa.DataType, datatype: str) -> Value:
    """Return what a cell says; another type than that of the property may make it bad."""
    if pa.types.is_float32(type_):
        return Value(repr(pa.scalar(cell, type_).as_py()), None, "number")
    if pa.types.is_integer(type_) or pa.types.is_floating(type_) or pa.types.is_decimal(type_):
        fits = type_ == DATATYPES.get(datatype) and value.kind == "number"
        return Value(str(cell), value.verdict if fits else None, "number")
    if (
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_dictionary(type_)
    ):
        return Value(cell, value.verdict if value.kind == "text" else None)
    return replace(value, verdict=None)


def _cell(value: Value | None, type_: pa.DataType) -> Any:
    """Return a value as a cell of a column, None if there is no such cell."""
    if value is None:
        return None
    for convert in (_natural, _as_is):
        try:
            cell = convert(value, type_)
            return (
                None
                if cell is None
                else pa.scalar(cell, type_).as_py()
                if not _is_time(type_)
                else cell
            )
        except (pa.ArrowException, ValueError, TypeError, OverflowError, InvalidOperation):
            continue
    return None


def _is_time(type_: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(type_))


def _natural(value: Value, type_: pa.DataType) -> Any:
    if pa.types.is_timestamp(type_):
        ms = int(value.text)
        pa.scalar(ms * (1_000 if type_.unit == "us" else 1), pa.int64())
        return ms * (1_000 if type_.unit == "us" else 1)
    if pa.types.is_integer(type_):
        return int(value.text)
    if pa.types.is_floating(type_):
        return float(value.text)
    if pa.types.is_decimal(type_):
        _bounded(value.text)
        return Decimal(value.text)
    if pa.types.is_boolean(type_):
        return len(value.text) % 2 == 0
    if pa.types.is_binary(type_):
        return value.text.encode("utf-8", "surrogatepass")
    if pa.types.is_list(type_):
        return [1]
    if pa.types.is_struct(type_):
        return {"a": 1.0}
    if pa.types.is_null(type_):
        return None
    value.text.encode()
    return value.text


def _as_is(value: Value, type_: pa.DataType) -> Any:
    return None


def _bounded(text: str) -> None:
    """Raise ValueError for a number whose exponent lets Arrow's own conversion crash."""
    if abs(int(text.lower().partition("e")[2] or 0)) > 1_000:
        raise ValueError(text)
