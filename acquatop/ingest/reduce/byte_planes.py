"""Byte planes: a column's first bytes, then its second bytes, and so on, for compression.

The high bytes of numbers are alike. Side by side they are packed in fewer bytes and less time:
columns of times, numbers and codes take some half as many.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

_SAMPLE = 1 << 12
"""Number of values that decide on a column."""
_CODEC = pa.Codec("zstd", 1)
_WIDTHS = (32, 64)

Bytes: TypeAlias = npt.NDArray[np.uint8]
_Change: TypeAlias = Callable[[Bytes], Bytes]


def planed(table: pa.Table) -> tuple[pa.Table, list[int]]:
    """Return a table with the byte planes of the columns that take fewer bytes so, and which.

    The values of these columns have no meaning any more.
    """
    at = [number for number, column in enumerate(table.columns) if _is_smaller(column)]
    return planed_at(table, at), at


def planed_at(table: pa.Table, at: Collection[int]) -> pa.Table:
    """Return a table with the byte planes of some columns of numbers without gaps."""
    return _mapped(table, at, _planes)


def whole(table: pa.Table, at: Collection[int]) -> pa.Table:
    """Return the table that some columns' planes were made of."""
    return _mapped(table, at, _values)


def _is_smaller(column: pa.ChunkedArray) -> bool:
    numbers = column.type.index_type if pa.types.is_dictionary(column.type) else column.type
    is_number = pa.types.is_integer(numbers) or pa.types.is_floating(numbers)
    if not is_number or numbers.bit_width not in _WIDTHS or column.null_count:
        return False
    middle = column.slice(max(0, len(column) - _SAMPLE) // 2, _SAMPLE)
    sample = _numbers(_combined(middle))
    return len(_CODEC.compress(_planes(sample))) < len(_CODEC.compress(sample.tobytes()))


def _mapped(table: pa.Table, at: Collection[int], change: _Change) -> pa.Table:
    columns = list(table.columns)
    for number in at:
        column = _combined(columns[number])
        changed = pa.py_buffer(change(_numbers(column)))
        is_coded = pa.types.is_dictionary(column.type)
        type_ = column.type.index_type if is_coded else column.type
        values = pa.Array.from_buffers(type_, len(column), [None, changed])
        if is_coded:
            ordered = column.type.ordered
            # These codes are out of bounds.
            values = pa.DictionaryArray.from_arrays(
                values, column.dictionary, ordered=ordered, safe=False
            )
        columns[number] = values
    return pa.table(columns, table.schema)


def _combined(column: pa.ChunkedArray) -> pa.Array:
    found = column.unify_dictionaries() if column.num_chunks > 1 else column
    return found.combine_chunks()


def _numbers(column: pa.Array) -> Bytes:
    """Return the bytes of a column's numbers or codes, a row for each."""
    numbers = column.indices if pa.types.is_dictionary(column.type) else column
    width = numbers.type.bit_width // 8
    data = np.frombuffer(numbers.buffers()[1] or b"", dtype=np.uint8)
    return data[numbers.offset * width :][: len(numbers) * width].reshape(-1, width)


def _planes(rows: Bytes) -> Bytes:
    planes = np.empty(rows.shape[::-1], dtype=np.uint8)
    for at in range(rows.shape[1]):
        planes[at] = rows[:, at]
    return planes


def _values(rows: Bytes) -> Bytes:
    planes, values = rows.reshape(rows.shape[::-1]), np.empty(rows.shape, dtype=np.uint8)
    for at in range(rows.shape[1]):
        values[:, at] = planes[at]
    return values
