"""Contract of reducers: their input and their output."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from acquatop.ingest.match import Found, Matcher
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.mapping import BAD, TIME, count_faults

_METADATA = b"acquatop"


@dataclass(frozen=True)
class Facts:
    """Facts about a partition's records, the same for every query; times are event times."""

    events: int = 0
    bad: Mapping[str, int] | None = None
    newest_ms: int | None = None
    earliest_ms: int | None = None
    """Earliest time of a good record."""

    @classmethod
    def of(cls, records: pa.RecordBatch) -> Facts:
        """Return the facts about decoded records."""
        times = records.column(TIME)
        good = times.filter(pc.is_null(records.column(BAD)))
        return cls(
            len(records),
            count_faults([records]) or None,
            pc.max(times).as_py(),
            pc.min(good).as_py() if len(good) else None,
        )


@dataclass(frozen=True)
class Part:
    """Result of a reducer for one partition: a table, and the panes that hold any good record.

    Panes are given by the first and the last of their windows, in time order.
    """

    facts: Facts
    panes: IntArray
    table: pa.Table

    def to_bytes(self) -> bytes:
        """Return the part as an Arrow stream."""
        facts = {
            "events": self.facts.events,
            "bad": self.facts.bad,
            "newest_ms": self.facts.newest_ms,
            "earliest_ms": self.facts.earliest_ms,
        }
        said = json.dumps({"facts": facts, "panes": self.panes.tolist()}).encode()
        table = self.table.replace_schema_metadata({**(self.table.schema.metadata or {}), _METADATA: said})
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes | pa.Buffer) -> Part:
        """Return the part that an Arrow stream holds, without copying its columns."""
        table = pa.ipc.open_stream(data).read_all()
        metadata = dict(table.schema.metadata)
        said = json.loads(metadata.pop(_METADATA))
        panes = np.array(said["panes"], dtype=np.int64).reshape(-1, 2)
        return cls(Facts(**said["facts"]), panes, table.replace_schema_metadata(metadata or None))


class Reducer(Protocol):
    """Reduction of a partition's records. It is sent to them, so it must be small and picklable."""

    @property
    def matcher(self) -> Matcher | None:
        """Matcher to apply first; None if the records themselves are wanted."""

    @property
    def windows(self) -> Windows | None:
        """Windows whose panes are wanted; None if no panes are wanted."""

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the result for a partition's good and bad records, or for matches among them."""


def panes_of(windows: Windows, records: pa.RecordBatch) -> IntArray:
    """Return the panes that hold a good record, in time order. O(n log n)."""
    times = records.column(TIME).filter(pc.is_null(records.column(BAD))).drop_null()
    in_order = np.sort(times.to_numpy())
    if not len(in_order):
        return np.empty((0, 2), dtype=np.int64)
    firsts, lasts = windows.spans(in_order)
    begins = np.flatnonzero(np.diff(firsts, prepend=firsts[0] - 1) | np.diff(lasts, prepend=lasts[0]))
    return np.column_stack([firsts[begins], lasts[begins]])
