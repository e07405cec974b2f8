"""Task on one bucket when a window closes: aggregate its keys and find the best of them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.buckets.key_texts import KeyTexts
from acquatop.ingest.buckets.partials import stored
from acquatop.ingest.buckets.replica_values import BucketValues, BucketView
from acquatop.ingest.buckets.sorted_hashes import Union, union
from acquatop.ingest.match import KEY
from acquatop.ingest.reduce.pane_partials import hashes_in, partial_in, table_of
from acquatop.ingest.reduce.partial_columns import HEAD
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.topk.aggregates.aggregate_totals import Totals
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.aggregates.partials import Accumulator, Numbering, Partial
from acquatop.topk.contract import FloatArray, IntArray, Rows
from acquatop.topk.order import best
from rspql.plan import Score
from rspql.scoring.ratios import Ratio

Pane = tuple[int, int]
Chunk = tuple[str, int]
"""File name, and position in the file."""


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
    """Bucket: chunks of each pane, ``crowded`` panes with chunks to merge, the replica's values."""

    number: int
    panes: Mapping[Pane, Sequence[Chunk]]
    crowded: frozenset[Pane] = frozenset()
    values: BucketValues | None = None


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

    The chunks of each merged pane are one chunk, and all of these are in one file.
    """

    bests: Sequence[BucketBest] = ()
    merged: Mapping[Pane, Chunk] = field(default_factory=dict)
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
        keys, texts, panes = self._read(bucket)
        totals = Totals(self.columns.aggregates)
        totals.grow(len(keys))
        merged = self._merge(bucket, keys, texts, panes, totals)
        if not self.rankings:
            return BucketFound(merged=merged)
        for pane, partials in panes.items():
            for partial in partials:
                totals.enter(pane[1], partial)
        view = None if bucket.values is None else bucket.values.read(self.folder, keys.hashes)
        content = _Keys(texts, view, totals)
        return BucketFound([self._best(each, content) for each in self.rankings], merged)

    def _try_to_write(self, number: int) -> None:
        nothing = pa.record_batch({HEAD: pa.array([], pa.int64())})
        self.folder.remove([self.folder.write([nothing], f"trial {number}".encode())])

    # Reading --------------------------------------------------------------------------------------

    def _read(self, bucket: Bucket) -> tuple[Union, KeyTexts, dict[Pane, list[Partial]]]:
        """Return the distinct keys, and the partials that each pane's chunks add to them."""
        wanted: dict[str, dict[int, Pane]] = {}
        for pane, chunks in bucket.panes.items():
            for file, at in chunks:
                wanted.setdefault(file, {})[at] = pane
        read = [
            (pane, chunk)
            for file, panes in wanted.items()
            for pane, chunk in zip(panes.values(), self.folder.read(file, panes), strict=True)
        ]
        keys = union([hashes_in(chunk) for _, chunk in read])
        texts = KeyTexts([chunk.column(KEY) for _, chunk in read], keys.firsts)
        panes_read: dict[Pane, list[Partial]] = {pane: [] for pane in sorted(bucket.panes)}
        for (pane, chunk), codes in zip(read, keys.codes, strict=True):
            panes_read[pane].append(partial_in(chunk, codes))
        return keys, texts, panes_read

    def _merge(
        self,
        bucket: Bucket,
        keys: Union,
        texts: KeyTexts,
        panes: dict[Pane, list[Partial]],
        totals: Totals,
    ) -> dict[Pane, Chunk]:
        """Write each crowded pane's partials as one chunk, all into one file.

        The merged partials replace the others in ``panes``.
        """
        crowded = sorted(bucket.crowded)
        if not crowded:
            return {}
        numbering = Numbering()
        numbering.grow(len(keys))
        folder = Accumulator(totals.folding, numbering)
        for pane in crowded:
            merged = folder.together(panes[pane])
            # Codes ascend with the hashes, as rows of a chunk must.
            order = np.argsort(merged.keys())
            panes[pane] = [merged.only(order, merged.keys()[order])]
        everything = texts.column(np.arange(len(keys)))
        rows = stored(
            table_of([(*pane, panes[pane][0]) for pane in crowded], everything, keys.hashes)
        )
        ends = np.cumsum([len(panes[pane][0].counts) for pane in crowded]).tolist()
        chunks = [
            rows.slice(start, stop - start) for start, stop in zip([0, *ends], ends, strict=False)
        ]
        origin = repr([list(bucket.panes[pane]) for pane in crowded]).encode()
        file = self.folder.write(chunks, origin)
        return {pane: (file, at) for at, pane in enumerate(crowded)}

    # Ranking --------------------------------------------------------------------------------------

    def _best(self, ranking: BucketRanking, keys: _Keys) -> BucketBest:
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

    def _first(self, count: int, at: IntArray, merits: FloatArray, keys: _Keys) -> IntArray:
        """Return the first of some keys, best first."""
        return at[best(count, merits[at], keys.newest[at], keys.texts.only(at))]

    def _with_rest(
        self,
        ranking: BucketRanking,
        keys: _Keys,
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


class _Keys:
    """Keys of a bucket, as columns."""

    def __init__(self, texts: KeyTexts, view: BucketView | None, totals: Totals) -> None:
        everything = np.arange(len(texts))
        self.view = view
        self.texts = texts
        self.newest = totals.newest(everything)
        self.aggregates = totals.aggregates(everything)
        self.rows = everything if view is None else view.known()

    def __len__(self) -> int:
        return len(self.newest)

    def take(self, at: IntArray) -> Rows:
        """Return some keys, with their newest times and aggregates."""
        texts = self.texts[at]
        return Rows(self.newest[at], texts, texts, tuple(column[at] for column in self.aggregates))


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
