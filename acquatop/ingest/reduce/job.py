"""Job of a stream: decode once, match once per pattern, reduce once per shared reducer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from acquatop.ingest.found import Found
from acquatop.ingest.reduce.arrival_order import ArrivalOrder
from acquatop.ingest.reduce.bad_items import bad_items
from acquatop.ingest.reduce.contract import Facts, Part, PartKind, Reducer, panes_of
from acquatop.ingest.reduce.late_finder import LateFinder, without_far_ahead
from acquatop.ingest.reduce.records import RECORDS
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.columns import together
from connectors.contract import RecordDecoder
from connectors.subjects import named_records

_NOWHERE = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Job:
    """Work to do on each partition of a batch.

    Records later than ``latest_ms`` are bad. With ``late``, records that are too late for a window
    are looked for. With ``order``, a partition is cut where its own records have made later ones
    late. With ``keeps_bad``, the rows that cannot be used are passed on; with
    ``keeps_records``, all records. ``queries`` names those that it is for.
    """

    mapping: RecordDecoder
    reducers: Sequence[Reducer]
    latest_ms: int | None = None
    late: LateFinder | None = None
    keeps_bad: bool = False
    keeps_records: bool = False
    order: ArrivalOrder | None = None
    queries: tuple[str, ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
        """Yield a partition's part for each reducer, in their order; nothing if it is empty.

        Without reducers, there is one part with facts alone. Then follow a part with all records,
        one with late records and one with bad items, if they are wanted and there are any. The same
        follows for each further segment.
        """
        batches = [batch for batch in batches if len(batch)]
        if not batches:
            return
        rows = together(batches)
        records = named_records(self.mapping, rows)
        if self.latest_ms is not None:
            records = without_far_ahead(records, self.latest_ms)
        behind = [] if self.order is None else list(self.order.segments(records))
        first = records.slice(0, len(records) - sum(len(each) for each, _ in behind))
        yield from self._parts(rows, first, self.late)
        for number, (segment, late) in enumerate(behind, start=1):
            for part in self._parts(rows, segment, late):
                yield replace(part, segment=number)

    def _parts(
        self, rows: pa.RecordBatch, records: pa.RecordBatch, late: LateFinder | None
    ) -> Iterator[Part]:
        yield from reduced(records, self.reducers, rows)
        if not self.reducers:
            # A query that joins later must know how far the stream had come.
            yield Part(Facts.of(records, rows), _NOWHERE, pa.table({}), PartKind.FACTS)
        yield from self._side_outputs(rows, records, late)

    def _side_outputs(
        self, rows: pa.RecordBatch, records: pa.RecordBatch, finder: LateFinder | None
    ) -> Iterator[Part]:
        if self.keeps_records:
            (part,) = reduced(records, [RECORDS], rows)
            yield replace(part, kind=PartKind.RECORDS)
        late = None if finder is None else finder.find(rows, records, self.mapping)
        if late is not None:
            yield Part(Facts(), _NOWHERE, late, PartKind.LATE)
        bad = bad_items(rows, records, self.mapping) if self.keeps_bad else None
        if bad is not None:
            yield Part(Facts(), _NOWHERE, bad, PartKind.BAD)


def reduced(
    records: pa.RecordBatch, reducers: Sequence[Reducer], rows: pa.RecordBatch | None = None
) -> Iterator[Part]:
    """Yield the part of decoded records for each reducer; each pattern is matched once.

    ``rows`` are the source's rows, which tell the places of bad ones.
    """
    facts = Facts.of(records, rows)
    found: dict[str, Found] = {}
    panes: dict[Windows, IntArray] = {}
    for reducer in reducers:
        matcher, windows, its = reducer.matcher, reducer.windows, None
        if matcher is not None:
            # A walk over the whole pattern.
            signature = matcher.signature
            if signature not in found:
                found[signature] = matcher.find(records)
            its = found[signature]
        if windows is not None and windows not in panes:
            panes[windows] = panes_of(windows, records)
        yield Part(
            facts, _NOWHERE if windows is None else panes[windows], reducer.reduce(records, its)
        )
