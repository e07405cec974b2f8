"""Casts from columns of any type to the columns of records: integers, doubles, texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.coded import coded
from connectors.instants import EARLIEST_MS, LATEST_MS
from connectors.scalars import SCALAR, is_list, lists_of, scalars_of

_UNITS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
_BEYOND = 2.0**63


def fitted(column: pa.Array, type_: pa.DataType) -> pa.Array:
    """Return a column cast to 64-bit integers, doubles, texts, coded texts or scalars.

    A column of lists becomes one of lists of these.

    A value that does not fit becomes null. Instants and dates become milliseconds since the epoch;
    the finer part is cut off. Fractions are not integers, and only finite numbers are doubles.
    Integers also become texts; as coded texts they stay integers of 64 bits, if these hold them,
    and whoever needs a text writes it. A column that fits already is returned as it is.

    >>> fitted(pa.array([1.0, 1.5, None]), pa.int64()).to_pylist()
    [1, None, None]
    """
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if type_ == SCALAR:
        return scalars_of(column)
    if is_list(column):
        return lists_of(column, fitted(column.flatten(), type_))
    if pa.types.is_dictionary(type_):
        return _coded(column, type_)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return _FITTERS[type_](column)


def _whole_numbers(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pa.types.is_timestamp(type_):
        return _milliseconds(column.cast(pa.int64()), _UNITS_PER_SECOND[type_.unit])
    if pa.types.is_date(type_):
        return pc.cast(column.cast(pa.timestamp("ms")), pa.int64())
    if pa.types.is_uint64(type_):
        column = pc.if_else(pc.less(column, pa.scalar(2**63, pa.uint64())), column, None)
    elif pa.types.is_floating(type_):
        column = column.cast(pa.float64())
        within = pc.and_(pc.greater_equal(column, -_BEYOND), pc.less(column, _BEYOND))
        column = pc.if_else(pc.and_(within, pc.equal(pc.floor(column), column)), column, None)
    elif pa.types.is_decimal(type_):
        return _of_decimals(column)
    return column.cast(pa.int64()) if _is_number(type_) else pa.nulls(len(column), pa.int64())


def _milliseconds(counts: pa.Int64Array, per_second: int) -> pa.Int64Array:
    if per_second >= 1_000:
        numbers = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False) // (per_second // 1_000)
    else:  # seconds beyond the years 1 to 9999 could overflow when multiplied
        seconds = pc.fill_null(counts, 0).to_numpy(zero_copy_only=False)
        numbers = np.clip(seconds, EARLIEST_MS // 1_000 - 1, LATEST_MS // 1_000 + 1) * 1_000
    return pa.array(numbers, pa.int64(), mask=pc.is_null(counts).to_numpy(zero_copy_only=False))


def _of_decimals(column: pa.Array) -> pa.Int64Array:
    # A slow path for a rare type: kernels on decimals reject a whole column if one value does not
    # fit.
    values = [
        None if each is None or each % 1 or abs(each) >= 2**63 else int(each)
        for each in column.to_pylist()
    ]
    return pa.array(values, pa.int64())


def _doubles(column: pa.Array) -> pa.Array:
    if pa.types.is_decimal(column.type):
        return column.cast(pa.float64())
    if not _is_number(column.type):
        return pa.nulls(len(column), pa.float64())
    column = column.cast(pa.float64(), safe=False)
    return (
        column
        if pc.all(pc.is_finite(column)).as_py()
        else pc.if_else(pc.is_finite(column), column, None)
    )


def _texts(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pa.types.is_integer(type_) or _is_text(type_):
        return column.cast(pa.string())
    return pa.nulls(len(column), pa.string())


def _coded(column: pa.Array, type_: pa.DictionaryType) -> pa.Array:
    if column.type == type_:
        return column
    if pa.types.is_integer(column.type) and not pa.types.is_uint64(column.type):
        return column.cast(pa.int64())
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if not (pa.types.is_integer(column.type) or _is_text(column.type)):
        return pa.nulls(len(column), type_)
    names = coded(column)
    return pa.DictionaryArray.from_arrays(names.indices, _texts(names.dictionary))


def _is_number(type_: pa.DataType) -> bool:
    return bool(pa.types.is_integer(type_) or pa.types.is_floating(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(type_)
        or pa.types.is_large_string(type_)
        or pa.types.is_string_view(type_)
    )


_FITTERS: Mapping[pa.DataType, Callable[[pa.Array], pa.Array]] = {
    pa.int64(): _whole_numbers,
    pa.float64(): _doubles,
    pa.string(): _texts,
}
