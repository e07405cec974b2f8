"""Matching of patterns of which a record may have several solutions, if only the latest counts."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.combining_graph_matcher import CombiningGraphMatcher
from acquatop.ingest.found import Found
from acquatop.topk.contract import IntArray
from connectors.contract import RecordDecoder
from connectors.mapping import BAD, SUBJECT, TIME
from rspql.plan import TopKPlan


class LatestGraphMatcher(CombiningGraphMatcher):
    """Matcher of a plan's group against the latest record of each subject.

    What it finds are all good records, as each replaces those before it.
    """

    def __init__(self, plan: TopKPlan, mapping: RecordDecoder, *, arrivals: str) -> None:
        super().__init__(plan, mapping, arrivals=arrivals)
        self.retracts = True

    def find(self, records: pa.RecordBatch) -> Found:
        """Return the good records of a batch."""
        good = records.filter(pc.is_null(records.column(BAD)))
        return Found(self, good, np.zeros(len(good), dtype=np.bool_))

    def newest(self, said: pa.Table) -> pa.Table:
        """Return the record of each subject that counts, in the order of subjects.

        Of equal times it is the one with the greater terms; any is greater than none.
        """
        keys = [SUBJECT, TIME, *self.said]
        known = [pc.coalesce(said.column(name), "") for name in self.said]
        sortable = pa.table([said.column(SUBJECT), said.column(TIME), *known], keys)
        order = pc.sort_indices(sortable, sort_keys=[(name, "ascending") for name in keys])
        records = said.take(order)
        _, lasts = np.unique(self.groups(records)[::-1], return_index=True)
        return records.take(pa.array(np.sort(len(records) - 1 - lasts)))

    def together(self, said: pa.Table) -> tuple[pa.Table, IntArray]:
        """Return the records of a window that count, each a graph of its own."""
        newest = self.newest(said)
        return newest, np.arange(len(newest))
