"""Late records: those of which a window has closed already, found where they are decoded."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.object_terms import terms_of
from acquatop.ingest.reduce.rows import is_of_statements, shown
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.contract import RecordDecoder
from connectors.fields import ROW
from connectors.mapping import BAD, TIME
from connectors.subjects import subjects_of

RECORD = "record"
TOO_FAR_AHEAD = "the time is too far ahead of the clock"

BoolArray = npt.NDArray[np.bool_]


def without_far_ahead(records: pa.RecordBatch, latest_ms: int) -> pa.RecordBatch:
    """Return decoded records; those later than ``latest_ms`` are marked as bad."""
    is_ahead = pc.fill_null(pc.greater(records.column(TIME), latest_ms), False)
    if not pc.any(is_ahead).as_py():
        return records
    columns = [
        column
        if name == ROW
        else pc.if_else(
            is_ahead, pa.scalar(TOO_FAR_AHEAD if name == BAD else None, column.type), column
        )
        for name, column in zip(records.schema.names, records.columns, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=records.schema)


def are_late(windows: Windows, last: int, times: IntArray) -> BoolArray:
    """Return a mask of the times that lie in a window up to ``last``, the last that has closed.

    >>> are_late(Windows(9, 3, 0), 1, np.array([0, 3, 12, 13])).tolist()
    [False, True, True, False]
    """
    firsts, lasts = windows.spans(times)
    late: BoolArray = (firsts <= lasts) & (firsts <= last)
    return late


class AnsweredSoFar(NamedTuple):
    """Windows of a query: the last that has closed, and the next to answer, None while unknown."""

    windows: Windows
    closed: int | None
    next: int | None = None

    def miss(self, times: IntArray) -> BoolArray:
        """Return a mask of the times of which a window has closed.

        While none has closed, these are the times in windows before the first that is answered.

        >>> AnsweredSoFar(Windows(9, 3, 0), None, 1).miss(np.array([3, 4, 12])).tolist()
        [True, False, False]
        """
        if self.closed is not None:
            return are_late(self.windows, self.closed, times)
        if self.next is None:
            return np.zeros(len(times), dtype=np.bool_)
        firsts, lasts = self.windows.spans(times)
        missed: BoolArray = (firsts <= lasts) & (lasts < self.next)
        return missed


@dataclass(frozen=True)
class LateFinder:
    """Finder of records in windows that may have closed; ``closed`` has the last of each windows.

    With ``keeps`` their rows are passed on as text. It costs next to nothing if no record is that
    old.
    """

    closed: Sequence[tuple[Windows, int]]
    keeps: bool

    def find(
        self, rows: pa.RecordBatch, records: pa.RecordBatch, mapping: RecordDecoder
    ) -> pa.Table | None:
        """Return the times of such records, and their rows; None if there are none."""
        until = max((windows.bounds(last)[1] for windows, last in self.closed), default=None)
        earliest = pc.min(records.column(TIME)).as_py()
        if until is None or earliest is None or earliest > until:
            return None
        old = pc.fill_null(pc.less_equal(records.column(TIME), until), False)
        at = np.flatnonzero(old.to_numpy(zero_copy_only=False))
        times = records.column(TIME).take(pa.array(at)).to_numpy()
        late = np.any([are_late(windows, last, times) for windows, last in self.closed], axis=0)
        if not late.any():
            return None
        at = at[late]
        table = pa.table({TIME: pa.array(times[late])})
        return (
            table.append_column(RECORD, pa.array(_texts(rows, records, mapping, at)))
            if self.keeps
            else table
        )


def _texts(
    rows: pa.RecordBatch, records: pa.RecordBatch, mapping: RecordDecoder, at: IntArray
) -> list[str]:
    """Return records as JSON: their lines or columns; statements in their decoded form."""
    places = records.column(ROW).take(pa.array(at))
    if "value" in rows.schema.names and pa.types.is_binary(rows.schema.field("value").type):
        if is_of_statements(mapping):
            return [json.dumps(text) for text in _statements(records.take(pa.array(at)), mapping)]
        return [
            json.dumps(line.decode(errors="replace"))
            for line in rows.column("value").take(places).to_pylist()
        ]
    return [json.dumps(row, default=str) for row in shown(rows.take(places))]


def _statements(records: pa.RecordBatch, mapping: RecordDecoder) -> list[str]:
    subjects = subjects_of(records).to_pylist()
    said: list[list[str]] = [[] for _ in subjects]
    for predicate, each in mapping.properties.items():
        terms = terms_of(records.column(mapping.column(predicate)), each.datatype)
        for lines, subject, term in zip(said, subjects, terms.to_pylist(), strict=True):
            if term is not None:
                lines.append(f"{subject} <{predicate}> {term} .")
    return ["\n".join(lines) for lines in said]
