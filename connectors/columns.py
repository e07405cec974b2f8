"""Decoder of rows in columns: a row becomes an item with one subject and some properties."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted
from connectors.coded import CODED, coded
from connectors.fields import FAULT, ROW, misfit
from connectors.mapping import FieldMapping
from connectors.scalars import SCALAR, is_list

MISFIT = "_misfit"
"""Column in which a source names the value of a row that does not have the requested type."""
COLUMN_TYPES = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "scalar": SCALAR,
}
"""Types that columns can be requested in, by their names in Spark."""
TYPE_NAMES = {**{type_: name for name, type_ in COLUMN_TYPES.items()}, CODED: "string"}


def coded_option(types: Mapping[str, pa.DataType]) -> str:
    """Return the option ``coded`` of a source of rows, for columns of the given types.

    >>> coded_option({"user": CODED, "at": pa.int64()})
    '["user"]'
    """
    return json.dumps([name for name, type_ in types.items() if type_ == CODED])


def columns_option(types: Mapping[str, pa.DataType]) -> str:
    """Return the option ``columns`` of a source of rows, for columns of the given types.

    >>> columns_option({"user": pa.string(), "at": pa.int64()})
    '{"user": "string", "at": "bigint"}'
    """
    return json.dumps({name: TYPE_NAMES[type_] for name, type_ in types.items()})


@dataclass(frozen=True)
class ColumnsMapping(FieldMapping):
    """Mapping from a row in columns to RDF. A time in milliseconds may also be an instant.

    A mapping's fields are the columns' names. Columns of other types than the properties' are cast
    if that changes no value, see :func:`connectors.casts.fitted`.
    """

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The needed columns, with the type that each must have."""
        types = super().types
        return {
            name: CODED if type_ == pa.string() and name != self.time else type_
            for name, type_ in types.items()
        }

    def named(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of rows; a missing column counts as nulls."""
        columns, faults = fitted_columns(batch, self.types, self.lists)
        rows = pa.array(np.arange(batch.num_rows, dtype=np.int32))
        return self.items(pa.table({**columns, FAULT: faults, ROW: rows}), batch)


def together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """Return batches as one. Where some have coded texts and others integers, all have texts."""
    if len(batches) == 1:
        return batches[0]
    schema = batches[0].schema
    if any(batch.schema != schema for batch in batches):
        batches = [_with_texts(batch, batches) for batch in batches]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


def _with_texts(batch: pa.RecordBatch, others: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    columns = {
        name: coded(batch.column(name).cast(pa.string()))
        if pa.types.is_integer(batch.column(name).type)
        and any(pa.types.is_dictionary(each.column(name).type) for each in others)
        else batch.column(name)
        for name in batch.schema.names
    }
    return pa.RecordBatch.from_pydict(columns)


def fitted_columns(
    batch: pa.RecordBatch | pa.Table,
    types: Mapping[str, pa.DataType],
    lists: Collection[str] | None = None,
) -> tuple[Mapping[str, pa.Array], pa.StringArray]:
    """Return a batch's columns in the requested types, and the faults of rows with a misfit.

    A list in another column than ``lists`` is a misfit; without ``lists`` any column may have some.
    """
    faults = fitted(batch.column(MISFIT), pa.string()) if MISFIT in batch.schema.names else None
    faults = pa.nulls(batch.num_rows, pa.string()) if faults is None else faults
    columns: dict[str, pa.Array] = {}
    for name, type_ in types.items():
        if name not in batch.schema.names:
            columns[name] = pa.nulls(batch.num_rows, type_)
            continue
        found = columns[name] = fitted(batch.column(name), type_)
        if is_list(found) and lists is not None and name not in lists:
            found = columns[name] = pa.nulls(batch.num_rows, type_)
        lost = _lost(found, batch.column(name))
        if lost is not None:
            faults = pc.if_else(pc.and_(lost, pc.is_null(faults)), misfit(name, type_), faults)
    return columns, faults if isinstance(faults, pa.Array) else faults.combine_chunks()


def _lost(found: pa.Array, column: pa.Array | pa.ChunkedArray) -> pa.BooleanArray | None:
    """Return True for each row that has lost a value to the requested type; None if none has."""
    if not is_list(found):
        if found.null_count == column.null_count:
            return None
        return pc.and_(pc.is_null(found), pc.is_valid(column))
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    before, after = column.flatten(), found.flatten()
    if before.null_count == after.null_count:
        return None
    lost = pc.and_(pc.is_null(after), pc.is_valid(before)).to_numpy(zero_copy_only=False)
    rows = np.zeros(len(column), np.bool_)
    rows[pc.list_parent_indices(column).to_numpy()[lost]] = True
    return pa.array(rows)
