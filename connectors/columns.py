"""From rows in columns to records: a row becomes an item with one subject and some properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from connectors.casts import fitted
from connectors.mapping import DATATYPES, FAULT, NAMES, Property, Template, column_of, items, schema_of

MISFIT = "_misfit"
"""The column in which a source says which value of a row is not of the type asked for."""
COLUMN_TYPES = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string()}
"""The types that columns can be asked for in, by their names in Spark."""
TYPE_NAMES = {type_: name for name, type_ in COLUMN_TYPES.items()}


def columns_option(types: Mapping[str, pa.DataType]) -> str:
    """Return the option ``columns`` of a source of rows for columns of some types.

    >>> columns_option({"user": pa.string(), "at": pa.int64()})
    '{"user": "string", "at": "bigint"}'
    """
    return json.dumps({name: TYPE_NAMES[type_] for name, type_ in types.items()})


@dataclass(frozen=True)
class ColumnsMapping:
    """How a row becomes RDF, and which column says when it happened: milliseconds since the epoch, or an instant.

    A mapping's fields are the columns' names. Columns of other types than the properties' are cast where
    no value changes by it, see :func:`connectors.casts.fitted`.
    """

    subject: Template
    time: str
    properties: Mapping[str, Property] = field(default_factory=dict)

    @property
    def types(self) -> Mapping[str, pa.DataType]:
        """The columns that are needed, and the type that each shall have."""
        fields = {each.field: DATATYPES[each.datatype] for each in self.properties.values()}
        return {**fields, self.subject.field: pa.string(), self.time: pa.int64()}

    def column(self, predicate: str) -> str:
        """Return the name of the column that holds a predicate's objects."""
        return column_of(self.properties, predicate)

    @property
    def schema(self) -> pa.Schema:
        """The columns of decoded batches: time, subject (an N-Triples IRI), one per predicate, the fault."""
        return schema_of(self.properties)

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of rows; a column that is not there is one of nulls."""
        columns, misfit = fitted_columns(batch, self.types)
        table = pa.table({**columns, FAULT: misfit})
        return items(table, self.subject, self.time, self.properties)


def fitted_columns(
    batch: pa.RecordBatch | pa.Table, types: Mapping[str, pa.DataType]
) -> tuple[Mapping[str, pa.Array], pa.StringArray]:
    """Return a batch's columns, each as the type asked for, and what is wrong in the rows where one does not fit."""
    misfit = fitted(batch.column(MISFIT), pa.string()) if MISFIT in batch.schema.names else None
    misfit = pa.nulls(batch.num_rows, pa.string()) if misfit is None else misfit
    columns = {}
    for name, type_ in types.items():
        if name not in batch.schema.names:
            columns[name] = pa.nulls(batch.num_rows, type_)
            continue
        columns[name] = fitted(batch.column(name), type_)
        if columns[name].null_count != batch.column(name).null_count:
            lost = pc.and_(pc.is_null(columns[name]), pc.is_valid(batch.column(name)))
            misfit = pc.if_else(pc.and_(lost, pc.is_null(misfit)), f'the field "{name}" is not {NAMES[type_]}', misfit)
    return columns, misfit if isinstance(misfit, pa.Array) else misfit.combine_chunks()
