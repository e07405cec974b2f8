"""Segments of a batch: they are processed one after the other, as if they were batches."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import NamedTuple

from acquatop.ingest.reduce.contract import Part
from acquatop.runtime import Batch

_BEFORE_ALL = -(1 << 63)


class Segment(NamedTuple):
    """Part of a batch, and the newest time that the stream has reached behind it, None if none."""

    batch: Batch
    newest_ms: int | None


def segments_of(batch: Batch) -> Sequence[Segment]:
    """Return a batch's segments: first that of each partition, then the others one by one.

    The partition that is furthest behind goes on first, and time does not pass it: so only
    what comes before a record in its partition makes it late. Nearly every batch is a single
    segment. O(n log p) for n segments of p partitions.
    """
    cut = [_by_number(parts) for parts in batch.partitions]
    if all(len(segments) <= 1 for segments in cut):
        return [_segment(batch, batch.partitions, newest_of(batch.partitions))]
    firsts = [segments[0] if segments else [] for segments in cut]
    behind = [(_reached(segments[0]), at) for at, segments in enumerate(cut) if len(segments) > 1]
    heapq.heapify(behind)
    found = [_segment(batch, firsts, _held_at(behind, batch))]
    found += _others(batch, cut, behind)
    return found


def _others(
    batch: Batch, cut: Sequence[Sequence[Sequence[Part]]], behind: list[tuple[int, int]]
) -> Iterator[Segment]:
    """Yield the segments behind the first of each partition."""
    done = [1] * len(cut)
    while behind:
        reached, at = heapq.heappop(behind)
        parts = cut[at][done[at]]
        done[at] += 1
        if done[at] < len(cut[at]):
            heapq.heappush(behind, (max(reached, _reached(parts)), at))
        yield _segment(batch, [parts], _held_at(behind, batch))


def _held_at(behind: Sequence[tuple[int, int]], batch: Batch) -> int | None:
    """Return the time of the partition furthest behind, that of the whole batch if none is left."""
    if not behind:
        return newest_of(batch.partitions)
    return None if behind[0][0] == _BEFORE_ALL else behind[0][0]


def _by_number(parts: Sequence[Part]) -> Sequence[Sequence[Part]]:
    return [list(each) for _, each in groupby(parts, key=lambda part: part.segment)]


def _segment(batch: Batch, partitions: Sequence[Sequence[Part]], newest_ms: int | None) -> Segment:
    return Segment(replace(batch, partitions=partitions), newest_ms)


def _reached(parts: Sequence[Part]) -> int:
    newest_ms = newest_of([parts])
    return _BEFORE_ALL if newest_ms is None else newest_ms


def newest_of(partitions: Sequence[Sequence[Part]]) -> int | None:
    """Return the newest time of some partitions' records; None if none has a time."""
    # Parts beside those of the queries have no facts.
    times = (part.facts.newest_ms for parts in partitions for part in parts)
    return max((time_ms for time_ms in times if time_ms is not None), default=None)


def together(segments: Sequence[Segment]) -> Batch:
    """Return a batch whose partitions are those of all segments, for facts about the whole."""
    return replace(
        segments[0].batch, partitions=[each for one in segments for each in one.batch.partitions]
    )
