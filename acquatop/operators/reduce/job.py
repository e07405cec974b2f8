"""A stream's job: decoded once, matched once per pattern, reduced once for all queries that share a reducer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.operators.match import Found
from acquatop.operators.reduce.contract import Facts, Part, Reducer, panes_of
from acquatop.topk.contract import IntArray
from acquatop.windows import Windows
from connectors.contract import RecordDecoder

_NOWHERE = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True)
class Job:
    """What is to be done with each partition of a batch."""

    mapping: RecordDecoder
    reducers: Sequence[Reducer]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[Part]:
        """Yield what a partition comes to for each reducer, in their order; nothing if it is empty."""
        rows = [batch for batch in batches if len(batch)]
        if rows:
            records = self.mapping.records(_together(rows))
            yield from reduced(records, self.reducers)


def reduced(records: pa.RecordBatch, reducers: Sequence[Reducer]) -> Iterator[Part]:
    """Yield what decoded records come to for each reducer: matched once per pattern."""
    facts = Facts.of(records)
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
