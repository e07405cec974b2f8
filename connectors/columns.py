"""From rows in columns to records: a row becomes an item with one subject and some properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted
from connectors.fields import FAULT, ROW, misfit
from connectors.mapping import IRI, FieldMapping

MISFIT = "_misfit"
"""The column in which a source says which value of a row is not of the type asked for."""
COLUMN_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
"""The types that columns can be asked for in, by their names in Spark."""
CODED = pa.dictionary(pa.int32(), pa.string())
"""Texts that come again and again: each is kept, looked at and written but once."""
TYPE_NAMES = {**{type_: name for name, type_ in COLUMN_TYPES.items()}, CODED: "string"}


def coded_option(types: Mapping[str, pa.DataType]) -> str:
    """Return the option ``coded`` of a source of rows for columns of some types.

    >>> coded_option({"user": CODED, "at": pa.int64()})
    '["user"]'
    """
    return json.dumps([name for name, type_ in types.items() if type_ == CODED])


def columns_option(types: Mapping[str, pa.DataType]) -> str:
    """Return the option ``columns`` of a source of rows for columns of some types.

    >>> columns_option({"user": pa.string(), "at": pa.int64()})
    '{"user": "string", "at": "bigint"}'
    """
    return json.dumps({name: TYPE_NAMES[type_] for name, type_ in types.items()})


@dataclass(frozen=True)
class ColumnsMapping(FieldMapping):
    """How a row in columns becomes RDF; where times are milliseconds, they may be instants as well.

    A mapping's fields are the columns' names. Columns of other types than the properties' are cast where
    no value changes by it, see :func:`connectors.casts.fitted`.
    """

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The columns that are needed, and the type that each shall have."""
        types = dict(super().types)
        iris = {each.field for each in self.properties.values() if each.datatype == IRI}
        others = {each.field for each in self.properties.values() if each.datatype != IRI}
        types.update(dict.fromkeys(iris - others - {self.subject.field, self.time}, CODED))
        return types

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of rows; a column that is not there is one of nulls."""
        columns, faults = fitted_columns(batch, self.types)
        rows = pa.array(np.arange(batch.num_rows, dtype=np.int32))
        return self.items(pa.table({**columns, FAULT: faults, ROW: rows}), batch)


def fitted_columns(
    batch: pa.RecordBatch | pa.Table, types: Mapping[str, pa.DataType]
) -> tuple[Mapping[str, pa.Array], pa.StringArray]:
    """Return a batch's columns, each as the type asked for, and what is wrong in the rows where one does not fit."""
    faults = fitted(batch.column(MISFIT), pa.string()) if MISFIT in batch.schema.names else None
    faults = pa.nulls(batch.num_rows, pa.string()) if faults is None else faults
    columns = {}
    for name, type_ in types.items():
        if name not in batch.schema.names:
            columns[name] = pa.nulls(batch.num_rows, type_)
            continue
        columns[name] = fitted(batch.column(name), type_)
        if columns[name].null_count != batch.column(name).null_count:
            lost = pc.and_(pc.is_null(columns[name]), pc.is_valid(batch.column(name)))
            faults = pc.if_else(pc.and_(lost, pc.is_null(faults)), misfit(name, type_), faults)
    return columns, faults if isinstance(faults, pa.Array) else faults.combine_chunks()
