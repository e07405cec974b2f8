"""Task on one bucket when a window closes: aggregate its keys and find the best of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.ingest.buckets.bucket_keys import BucketKeys
from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.buckets.key_texts import KeyTexts
from acquatop.ingest.buckets.partials import stored
from acquatop.ingest.buckets.replica_values import BucketValues, BucketView
from acquatop.ingest.buckets.sorted_hashes import union
from acquatop.ingest.reduce.pane_partials import hashes_in, partial_in, table_of
from acquatop.ingest.reduce.partial_columns import HEAD
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.ingest.solution_columns import KEY
from acquatop.topk.aggregates.aggregate_totals import folding_of
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.aggregates.partials import Accumulator, Numbering
from acquatop.topk.contract import FloatArray, IntArray, Rows
from acquatop.topk.order import best
from rspql.plan import Score
from rspql.scoring.ratios import Ratio

Pane = tuple[int, int]
Chunk = tuple[str, int]
"""File name, and position in the file."""


class PaneSpan(NamedTuple):
    """Run of panes by their numbers, the last excluded."""

    start: int
    stop: int


@dataclass(frozen=True)
class BucketRanking:
    """Ranking of keys by one query: its score, the number of best keys, the size of a sample.

    ``count`` best keys are needed. ``sample`` keys stand for all others of a bucket.
    """

    score: Score
    count: int
    sample: int


@dataclass(frozen=True)
class Bucket:
    """Bucket: chunks of each pane, ``crowded`` panes with chunks to merge, the replica's values.

    The chunks of ``spans`` are read as well, and those that are ``made`` are written, of panes and
    spans that are read.
    """

    number: int
    panes: Mapping[Pane, Sequence[Chunk]]
    crowded: frozenset[Pane] = frozenset()
    values: BucketValues | None = None
    spans: Mapping[PaneSpan, Chunk] = field(default_factory=dict)
    made: Mapping[PaneSpan, Sequence[Pane | PaneSpan]] = field(default_factory=dict)


@dataclass(frozen=True)
class BucketBest:
    """Result of a bucket for a query: some keys with their aggregates, facts about the ``rest``.

    Of the rest, ``unscored`` have no score. ``reaches`` are the merits that keys unknown to the
    replica could have, and ``counts`` the numbers of keys with each. No key of the rest with
    another value could have more than ``most``; it is NaN if none could be a result. ``sample``
    stands for the rest. ``greatest`` has the sizes of all keys' exact aggregates.
    """

    rows: Rows
    rest: int
    unscored: int
    reaches: FloatArray
    counts: IntArray
    most: float
    sample: Rows
    greatest: Mapping[str, tuple[float, float]]


@dataclass(frozen=True)
class BucketFound:
    """Result of a task: each query's best, and the places of merged chunks; or a ``problem``.

    The chunks of each merged pane are one chunk, and all of these are in one file; likewise the
    chunks of spans that were made. ``keys`` is the number of the bucket's keys.
    """

    bests: Sequence[BucketBest] = ()
    keys: int = 0
    merged: Mapping[Pane, Chunk] = field(default_factory=dict)
    made: Mapping[PaneSpan, Chunk] = field(default_factory=dict)
    problem: str | None = None


@dataclass(frozen=True)
class BucketTask:
    """Task that reads a bucket's chunks and ranks its keys.

    Keys are told apart by their hashes; texts are read of those that tie, and of those returned.
    O(rows of its chunks) time, and O(its keys and chunks) memory. ``asked`` is the number of keys
    wanted that have no value, and the number of those that the remote did not have. A ``trial``
    also finds out if files can be written there.
    """

    folder: ChunkFolder
    columns: AggregateColumns
    rankings: Sequence[BucketRanking]
    asked: int = 0
    trial: bool = False

    def __call__(self, bucket: Bucket) -> BucketFound:
        """Return the result for a bucket."""
        try:
            if self.trial:
                self._try_to_write(bucket.number)
            return self._found(bucket)
        except (OSError, pa.ArrowException) as error:
            return BucketFound(problem=str(error))

    def _found(self, bucket: Bucket) -> BucketFound:
        chunks = self._read(bucket)
        spans = {span: self.folder.read(file, [at]) for span, (file, at) in bucket.spans.items()}
        merged = self._merge(bucket, chunks)
        if not self.rankings:
            return BucketFound(merged=merged)
        made = self._make(bucket, chunks, spans)
        every = [*(chunks[pane] for pane in sorted(chunks)), *spans.values()]
        in_order = [(0, rows) for own in every for rows in own]
        keys = BucketKeys.of(in_order, self.columns.aggregates)
        view = None if bucket.values is None else bucket.values.read(self.folder, keys.hashes)
        content = _Content(keys, view)
        bests = [self._best(each, content) for each in self.rankings]
        return BucketFound(bests, len(keys), merged, made)

    def _try_to_write(self, number: int) -> None:
        nothing = pa.record_batch({HEAD: pa.array([], pa.int64())})
        self.folder.remove([self.folder.write([nothing], f"trial {number}".encode())])

    # Reading --------------------------------------------------------------------------------------

    def _read(self, bucket: Bucket) -> dict[Pane, list[pa.RecordBatch]]:
        """Return each pane's chunks."""
        wanted: dict[str, dict[int, Pane]] = {}
        for pane, chunks in bucket.panes.items():
            for file, at in chunks:
                wanted.setdefault(file, {})[at] = pane
        read: dict[Pane, list[pa.RecordBatch]] = {pane: [] for pane in bucket.panes}
        for file, panes in wanted.items():
            for pane, rows in zip(panes.values(), self.folder.read(file, panes), strict=True):
                read[pane].append(rows)
        return read

    def _merge(self, bucket: Bucket, chunks: dict[Pane, list[pa.RecordBatch]]) -> dict[Pane, Chunk]:
        """Write each crowded pane's chunks as one, all into one file.

        The merged chunks replace the others in ``chunks``.
        """
        crowded = sorted(bucket.crowded)
        if not crowded:
            return {}
        merged = self._merged([chunks[pane] for pane in crowded])
        chunks.update({pane: [rows] for pane, rows in zip(crowded, merged, strict=True)})
        origin = repr([list(bucket.panes[pane]) for pane in crowded]).encode()
        file = self.folder.write(merged, origin)
        return {pane: (file, at) for at, pane in enumerate(crowded)}

    def _make(
        self,
        bucket: Bucket,
        chunks: Mapping[Pane, list[pa.RecordBatch]],
        spans: Mapping[PaneSpan, list[pa.RecordBatch]],
    ) -> dict[PaneSpan, Chunk]:
        """Write the spans that are wanted, all into one file; those without rows are left out."""
        parts = {
            span: [
                rows
                for part in of
                for rows in (
                    spans.get(part, ()) if isinstance(part, PaneSpan) else chunks.get(part, ())
                )
            ]
            for span, of in bucket.made.items()
        }
        made = [span for span, own in parts.items() if own]
        if not made:
            return {}
        origin = repr((bucket.number, made)).encode()
        file = self.folder.write(self._merged([parts[span] for span in made]), origin)
        return {span: (file, at) for at, span in enumerate(made)}

    def _merged(self, groups: Sequence[Sequence[pa.RecordBatch]]) -> list[pa.RecordBatch]:
        """Return the rows of each group as one chunk, each key once."""
        each = [rows for group in groups for rows in group]
        keys = union([hashes_in(rows) for rows in each])
        texts = KeyTexts([rows.column(KEY) for rows in each], keys.firsts)
        numbering = Numbering()
        numbering.grow(len(keys))
        folder = Accumulator(folding_of(self.columns.aggregates), numbering)
        partials, codes = [], iter(keys.codes)
        for group in groups:
            merged = folder.together([partial_in(rows, next(codes)) for rows in group])
            # Codes ascend with the hashes, as rows of a chunk must.
            order = np.argsort(merged.keys())
            partials.append((0, 0, merged.only(order, merged.keys()[order])))
        everything = texts.column(np.arange(len(keys)))
        rows = stored(table_of(partials, everything, keys.hashes))
        ends = np.cumsum([len(partial.counts) for _, _, partial in partials]).tolist()
        return [
            rows.slice(start, stop - start) for start, stop in zip([0, *ends], ends, strict=False)
        ]

    # Ranking --------------------------------------------------------------------------------------

    def _best(self, ranking: BucketRanking, keys: _Content) -> BucketBest:
        scoring = ReplicaScoring(ranking.score, keys.view)
        names = ranking.score.stream_variables
        parts = tuple(self.columns.numbers(name, keys.aggregates) for name in names)
        ratios = self.columns.ratios(keys.aggregates)
        merits = merits_of(scoring, keys.rows, parts, keys.aggregates, ratios)
        chosen = [self._first(ranking.count, np.flatnonzero(~np.isnan(merits)), merits, keys)]
        without = np.isnan(merits) & scoring.can_count(parts, len(keys))
        if keys.view is not None and self.asked:
            expected = scoring.expected(parts, len(keys))
            # Keys without an expected merit come last.
            expected = np.where(np.isnan(expected), -math.inf, expected)
            asked = (without & (keys.rows < 0), without & keys.view.may_be_asked_again())
            chosen += [
                self._first(self.asked, np.flatnonzero(each), expected, keys) for each in asked
            ]
        is_rest = np.ones(len(keys), dtype=np.bool_)
        is_rest[np.concatenate(chosen)] = False
        at = np.concatenate(chosen)
        if keys.view is None:
            nothing = keys.take(at[:0])
            return BucketBest(
                keys.take(at),
                0,
                _count(without & is_rest),
                _NONE,
                _NONE.astype(int),
                math.nan,
                nothing,
                self.columns.greatest(keys.aggregates),
            )
        return self._with_rest(ranking, keys, at, scoring, parts, is_rest, without & is_rest)

    def _first(self, count: int, at: IntArray, merits: FloatArray, keys: _Content) -> IntArray:
        """Return the first of some keys, best first."""
        if len(at) == len(keys):
            return best(count, merits, keys.newest, keys.texts)
        return at[best(count, merits[at], keys.newest[at], keys.texts.only(at))]

    def _with_rest(
        self,
        ranking: BucketRanking,
        keys: _Content,
        at: IntArray,
        scoring: ReplicaScoring,
        parts: Columnwise,
        is_rest: BoolArray,
        without: BoolArray,
    ) -> BucketBest:
        """Return some keys, and facts about the others."""
        unknown = reaches_of(scoring, parts, without & (keys.rows < 0))
        reaches, counts = np.unique(unknown, return_counts=True)
        most = reaches_of(scoring, parts, is_rest & scoring.can_count(parts, len(keys)))
        rest = np.flatnonzero(is_rest)
        sample = rest[:: max(1, -(-len(rest) // ranking.sample))] if ranking.sample else rest[:0]
        return BucketBest(
            keys.take(at),
            len(rest),
            _count(without),
            reaches,
            counts,
            float(most.max(initial=-math.inf)) if len(most) else math.nan,
            keys.take(sample),
            self.columns.greatest(keys.aggregates),
        )


_NONE = np.empty(0)


class _Content:
    """Keys of a bucket, and the replica's values for them."""

    def __init__(self, keys: BucketKeys, view: BucketView | None) -> None:
        self.view = view
        self.texts = keys.texts
        self.newest = keys.newest
        self.aggregates = keys.aggregates
        self.rows = np.arange(len(keys)) if view is None else view.known()
        self.take = keys.take

    def __len__(self) -> int:
        return len(self.newest)


def merits_of(
    scoring: ReplicaScoring,
    rows: IntArray,
    parts: Columnwise,
    aggregates: Columnwise,
    ratios: Mapping[str, Ratio],
) -> FloatArray:
    """Return each key's merit; NaN also if an aggregate is no number."""
    merits = scoring.merits_at(rows, parts, ratios)
    for column in aggregates:
        merits = np.where(np.isnan(column), np.nan, merits)
    return merits


def reaches_of(scoring: ReplicaScoring, parts: Columnwise, which: BoolArray) -> FloatArray:
    """Return merits that some keys cannot exceed, whatever values the remote has for them."""
    at = np.flatnonzero(which)
    return scoring.reaches(tuple(part[at] for part in parts), len(at))


def _count(which: BoolArray) -> int:
    return int(np.count_nonzero(which))
