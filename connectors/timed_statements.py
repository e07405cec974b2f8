"""Decoder of statements that a program has made itself, each with its time and its record."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from connectors.mapping import Property, RecordColumns
from connectors.ntriples import records_of
from connectors.statements import Statements

_SCHEMA = pa.schema(
    [
        ("time", pa.int64()),
        ("record", pa.int64()),
        ("subject", pa.string()),
        ("predicate", pa.string()),
        ("object", pa.string()),
    ]
)


class TimedStatement(NamedTuple):
    """Statement of a record at a time, its terms in N-Triples syntax.

    The statements of one record have one subject. They stand together, and so do their numbers:
    0, 1 and so on.
    """

    time_ms: int
    record: int
    subject: str
    predicate: str
    object: str


def rows_of(statements: Iterable[TimedStatement]) -> pa.RecordBatch:
    """Return statements as the rows that :class:`StatementsMapping` decodes."""
    columns = zip(*statements, strict=True)
    arrays = [pa.array(each, of.type) for each, of in zip(columns, _SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


@dataclass(frozen=True)
class StatementsMapping(RecordColumns):
    """Mapping from statements to records.

    A second object of a property is a fault of its record, unless ``several`` is set: then it has a
    row of its own.
    """

    properties: Mapping[str, Property] = field(default_factory=dict)
    several: bool = False
    time: str = ""
    """No predicate: the rows have the time."""

    def records(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the records in a batch of statements."""
        subject, predicate, object_ = (
            batch.column(name) for name in ("subject", "predicate", "object")
        )
        record = np.asarray(batch.column("record").to_numpy(), dtype=np.int64)
        first = np.flatnonzero(np.diff(record, prepend=-1))
        nothing = pa.repeat(pa.scalar("", pa.string()), len(batch))
        statements = Statements(
            subject,
            predicate,
            object_,
            graph=nothing,
            fault=pa.nulls(len(batch), pa.string()),
            group=record,
            row=np.arange(len(batch)),
        )
        return records_of(self, statements, batch.column("time").take(pa.array(first)))
