"""Contract of reducers: their input and their output."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from acquatop.ingest.found import Found
from acquatop.ingest.match import Matcher
from acquatop.ingest.place import Place
from acquatop.ingest.reduce.byte_planes import planed, whole
from acquatop.ingest.reduce.packing import PACKED, PACKED_FROM
from acquatop.ingest.reduce.panes import spans_of
from acquatop.ingest.reduce.rows import place_at
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.fields import ROW
from connectors.mapping import BAD, TIME, count_faults
from connectors.row_origins import origins_of

MOST_PLACES = 20
"""Of how many reasons a partition says where an item stands that is bad for it."""

_METADATA = b"acquatop"


@dataclass(frozen=True)
class Facts:
    """Facts about a partition's records, the same for every query; times are event times."""

    events: int = 0
    bad: Mapping[str, int] | None = None
    newest_ms: int | None = None
    earliest_ms: int | None = None
    """Earliest time of a good record."""
    bad_at: Mapping[str, Place] | None = None
    """Place of the first bad item of each reason."""

    @classmethod
    def of(cls, records: pa.RecordBatch, rows: pa.RecordBatch | None = None) -> Facts:
        """Return the facts about decoded records; ``rows`` are those of the source that they were
        decoded from.
        """
        times = records.column(TIME)
        good = times.filter(pc.is_null(records.column(BAD)))
        return cls(
            len(records),
            count_faults([records]) or None,
            pc.max(times).as_py(),
            pc.min(good).as_py() if len(good) else None,
            None if rows is None else _first_places(rows, records) or None,
        )


def _first_places(rows: pa.RecordBatch, records: pa.RecordBatch) -> dict[str, Place]:
    """Return where the first bad item of each reason stands. O(1) where none is bad."""
    bad = records.column(BAD)
    if bad.null_count == len(bad):
        return {}
    at = np.flatnonzero(pc.is_valid(bad).to_numpy(zero_copy_only=False))
    coded = bad.take(pa.array(at)).dictionary_encode()
    # Codes are given in the order in which reasons come.
    firsts = np.unique(coded.indices.to_numpy(), return_index=True)[1][:MOST_PLACES]
    places = origins_of(rows)
    return {
        bad[record].as_py(): place_at(places, records.column(ROW)[record].as_py())
        for record in at[firsts].tolist()
    }


class PartKind(enum.StrEnum):
    """Use of a part."""

    REDUCED = "reduced"
    """Result of a query's reducer."""
    RECORDS = "records"
    """Decoded records, for a recording."""
    LATE = "late"
    """Records that may be late, for the side output of late records."""
    BAD = "bad"
    """Items that cannot be used, for the dead letters."""
    FACTS = "facts"
    """Nothing: the part's facts are all that is needed while no query reads the stream."""


@dataclass(frozen=True)
class Part:
    """Result of a reducer for one partition: a table, and the panes that hold any good record.

    Panes are given by the first and the last of their windows, in time order. ``segment`` counts
    the cuts before it (:mod:`acquatop.ingest.reduce.arrival_order`).
    """

    facts: Facts
    panes: IntArray
    table: pa.Table
    kind: PartKind = PartKind.REDUCED
    segment: int = 0

    @property
    def nbytes(self) -> int:
        """Bytes of the table's columns."""
        return int(self.table.nbytes)

    def to_bytes(self) -> bytes:
        """Return the part as an Arrow stream; the columns of a large one are compressed.

        Of columns that are smaller so, the byte planes are.
        """
        facts = {
            "events": self.facts.events,
            "bad": self.facts.bad,
            "newest_ms": self.facts.newest_ms,
            "earliest_ms": self.facts.earliest_ms,
            "bad_at": self.facts.bad_at,
        }
        is_packed = self.nbytes >= PACKED_FROM
        table, planes = planed(self.table) if is_packed else (self.table, [])
        said = json.dumps(
            {
                "facts": facts,
                "panes": self.panes.tolist(),
                "kind": self.kind,
                "segment": self.segment,
                **({"planes": planes} if planes else {}),
            }
        ).encode()
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), _METADATA: said})
        sink = pa.BufferOutputStream()
        options = PACKED if is_packed else None
        with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        return bytes(sink.getvalue())

    @classmethod
    def from_bytes(cls, data: bytes | pa.Buffer) -> Part:
        """Return the part that an Arrow stream holds; columns are copied only to unpack them."""
        table = pa.ipc.open_stream(data).read_all()
        metadata = dict(table.schema.metadata)
        said = json.loads(metadata.pop(_METADATA))
        panes = np.array(said["panes"], dtype=np.int64).reshape(-1, 2)
        facts = said["facts"]
        if facts.get("bad_at") is not None:
            facts["bad_at"] = {reason: Place(*place) for reason, place in facts["bad_at"].items()}
        kind = PartKind(said.get("kind", PartKind.REDUCED))
        table = whole(table.replace_schema_metadata(metadata or None), said.get("planes", ()))
        return cls(Facts(**facts), panes, table, kind, said.get("segment", 0))


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
    return spans_of(windows, times.to_numpy())
