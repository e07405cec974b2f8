"""Keys of a bucket in a window: their aggregates, summed a range of keys at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.buckets.key_texts import KeyTexts
from acquatop.ingest.buckets.sorted_hashes import union, unsigned
from acquatop.ingest.identity_hash import Hashes
from acquatop.ingest.reduce.pane_partials import hashes_in, partial_in
from acquatop.ingest.solution_columns import KEY
from acquatop.topk.aggregates.aggregate_totals import AggregateKind, Totals
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.contract import AnyArray, IntArray, Rows

ROWS = 1 << 17
"""Number of rows summed at a time: so many stay in a processor's cache."""

PaneRows = tuple[int, pa.RecordBatch]
"""Last window of a pane, and partials with ascending hashes, each key once."""


@dataclass(frozen=True)
class BucketKeys:
    """Distinct keys with ascending hashes: newest times, aggregates, and texts yet to be read."""

    hashes: Hashes
    texts: KeyTexts
    newest: IntArray
    aggregates: Columnwise

    @classmethod
    def of(cls, chunks: Sequence[PaneRows], aggregates: Sequence[AggregateKind]) -> BucketKeys:
        """Sum some panes' chunks, one at least. O(their rows), without reading texts."""
        pieces = list(_pieces(chunks))
        summed = [_summed(piece, aggregates) for piece in pieces]
        starts = np.cumsum([0, *(sum(len(rows) for _, rows in piece) for piece in pieces)]).tolist()
        heads, tails, firsts, newest, *columns = (
            np.concatenate(each) for each in zip(*summed, strict=True)
        )
        sizes = [len(each[0]) for each in summed]
        texts = KeyTexts(
            [rows.column(KEY) for piece in pieces for _, rows in piece],
            firsts + np.repeat(starts[:-1], sizes),
        )
        return cls((heads, tails), texts, newest, tuple(columns))

    def __len__(self) -> int:
        return len(self.newest)

    def take(self, at: IntArray) -> Rows:
        """Return some keys, with their newest times and aggregates."""
        texts = self.texts[at]
        return Rows(self.newest[at], texts, texts, tuple(column[at] for column in self.aggregates))


def _pieces(chunks: Sequence[PaneRows]) -> Iterator[Sequence[PaneRows]]:
    """Yield the chunks cut into ranges of keys, ascending."""
    heads = [unsigned(hashes_in(rows)[0]) for _, rows in chunks]
    count = -(-sum(map(len, heads)) // ROWS)
    longest = max(heads, key=len)
    bounds = longest[np.arange(1, count) * len(longest) // count]
    cuts = [[0, *np.searchsorted(each, bounds).tolist(), len(each)] for each in heads]
    for number in range(count):
        piece = [
            (last, rows.slice(cut[number], cut[number + 1] - cut[number]))
            for (last, rows), cut in zip(chunks, cuts, strict=True)
            if cut[number + 1] > cut[number]
        ]
        if piece:
            yield piece


def _summed(piece: Sequence[PaneRows], aggregates: Sequence[AggregateKind]) -> Sequence[AnyArray]:
    """Return columns of the distinct keys: hashes, first positions, newest times, aggregates."""
    keys = union([hashes_in(rows) for _, rows in piece])
    totals = Totals(aggregates)
    totals.grow(len(keys))
    for (last, rows), codes in zip(piece, keys.codes, strict=True):
        totals.enter(last, partial_in(rows, codes))
    everything = np.arange(len(keys))
    newest = totals.newest(everything)
    return [*keys.hashes, keys.firsts, newest, *totals.aggregates(everything)]
