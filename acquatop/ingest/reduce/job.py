"""A stream's job: decoded once, matched once per pattern, reduced once for all queries that share a reducer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.match import Found
from acquatop.ingest.reduce.bad import bad_items
from acquatop.ingest.reduce.contract import Facts, Part, Reducer, panes_of
from acquatop.ingest.reduce.late import LateFinder, without_far_ahead
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.contract import RecordDecoder

_NOWHERE = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Job:
    """What is to be done with each partition of a batch.

    Records later than ``latest_ms`` are bad. With ``late`` those that come too late for a window are looked for, and
    with ``keeps_bad`` the rows that cannot be used are handed on.
    """

    mapping: RecordDecoder
    reducers: Sequence[Reducer]
    latest_ms: int | None = None
    late: LateFinder | None = None
    keeps_bad: bool = False

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
        """Yield what a partition comes to for each reducer, in their order; nothing if it is empty.

        After these comes a part with late records, and one with bad items, if there are any.
        """
        batches = [batch for batch in batches if len(batch)]
        if not batches:
            return
        rows = _together(batches)
        records = self.mapping.records(rows)
        if self.latest_ms is not None:
            records = without_far_ahead(records, self.latest_ms)
        yield from reduced(records, self.reducers, rows)
        late = None if self.late is None else self.late.find(rows, records, self.mapping)
        bad = bad_items(rows, records, self.mapping) if self.keeps_bad else None
        yield from (Part(Facts(), _NOWHERE, table) for table in (late, bad) if table is not None)


def reduced(records: pa.RecordBatch, reducers: Sequence[Reducer], rows: pa.RecordBatch | None = None) -> Iterator[Part]:
    """Yield what decoded records come to for each reducer: matched once per pattern.

    ``rows`` are the source's, to say where bad ones stand.
    """
    facts = Facts.of(records, rows)
    found: dict[str, Found] = {}
    panes: dict[Windows, IntArray] = {}
    for reducer in reducers:
        matcher, windows = reducer.matcher, reducer.windows
        if matcher is not None and matcher.signature not in found:
            found[matcher.signature] = matcher.find(records)
        if windows is not None and windows not in panes:
            panes[windows] = panes_of(windows, records)
        its = None if matcher is None else found[matcher.signature]
        yield Part(facts, _NOWHERE if windows is None else panes[windows], reducer.reduce(records, its))


def _together(batches: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
