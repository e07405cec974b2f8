"""Columns of a DataFrame as a stream's mapping needs them, or a message that says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from acquatop.errors import UserError
from connectors.coded import CODED
from connectors.columns import ColumnsMapping
from connectors.contract import RecordDecoder
from connectors.fields import NAMES
from connectors.scalars import SCALAR

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from acquatop.catalog.catalog import Stream


def needed_columns(mapping: RecordDecoder) -> tuple[str, ...]:
    """Return the columns that a mapping reads: by name, nested ones too, or ``value``."""
    return tuple(mapping.types) if isinstance(mapping, ColumnsMapping) else ("value",)


def mapped_columns(rows: DataFrame, stream: Stream) -> DataFrame:
    """Return the columns that a stream's mapping reads, in their order, under names of no meaning.

    Spark passes columns with a dot in their name to no Arrow function. Raises
    :class:`~acquatop.errors.UserError` for missing ones, and for those of types that the mapping
    could never use.
    """
    from pyspark.errors import PySparkException
    from pyspark.sql.functions import col

    needed = needed_columns(stream.mapping)
    try:
        found = rows.select(*(col(name).alias(f"c{at}") for at, name in enumerate(needed)))
    except PySparkException:
        has, needs = (", ".join(f'"{each}"' for each in names) for names in (rows.columns, needed))
        message = f"the source of <{stream.iri}> has no such columns as its mapping reads: {needs}"
        raise UserError(f"{message}\n  hint: it has {has}") from None
    for name, field in zip(needed, found.schema.fields, strict=True):
        _check(name, field.dataType, stream)
    return found if isinstance(stream.mapping, ColumnsMapping) else _as_bytes(found)


def _as_bytes(rows: DataFrame) -> DataFrame:
    from pyspark.sql.functions import col

    return rows.select(col(rows.columns[0]).cast("binary"))


def _check(name: str, type_: DataType, stream: Stream) -> None:
    mapping = stream.mapping
    if isinstance(mapping, ColumnsMapping):
        needed = mapping.types[name]
        needed = pa.string() if needed == CODED else needed
        fits, words = _fits(type_, needed), NAMES[needed]
    else:
        fits, words = type_.simpleString() in ("string", "binary"), "text or bytes"
    if not fits:
        raise UserError(
            f'the column "{name}" of <{stream.iri}> is {type_.simpleString()}, and its mapping '
            f"needs {words}\n  hint: {_hint(name, type_)}"
        )


def _fits(type_: DataType, needed: pa.DataType) -> bool:
    """Return True if values of Spark's type may become ones of the needed type."""
    from pyspark.sql import types

    integers = (types.ByteType, types.ShortType, types.IntegerType, types.LongType)
    numbers = (*integers, types.FloatType, types.DoubleType, types.DecimalType)
    instants = (types.TimestampType, types.TimestampNTZType, types.DateType)
    texts = (types.StringType, types.VarcharType, types.CharType)
    if isinstance(type_, types.ArrayType):
        return _fits(type_.elementType, needed)
    if needed == SCALAR:
        return isinstance(type_, (*numbers, *instants, *texts, types.BooleanType))
    known: dict[pa.DataType, tuple[type[DataType], ...]] = {
        pa.int64(): (*numbers, *instants),
        pa.float64(): numbers,
        pa.string(): (*integers, *texts),
    }
    return isinstance(type_, known[needed])


def _hint(name: str, type_: DataType) -> str:
    """Return the way to make a usable column."""
    written = type_.simpleString().partition("<")[0]
    if written == "struct":
        first = type_.fieldNames()[0]  # type: ignore[attr-defined]
        return f'map a field of it, such as "{name}.{first}"'
    ways = {
        "array": f'select = ["*", "explode({name}) AS item"], and map "item"',
        "map": f'select = ["*", "{name}[\'key\'] AS item"], and map "item"',
    }
    return ways.get(written, f'select = ["*", "CAST({name} AS STRING) AS item"], and map "item"')
