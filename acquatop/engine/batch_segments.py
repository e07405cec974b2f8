"""Segments of a batch: they are processed one after the other, as if they were batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from acquatop.runtime import Batch


def segments_of(batch: Batch) -> Sequence[Batch]:
    """Return a batch's segments; the n-th holds that of each partition that has as many.

    Nearly every batch is a single segment.
    """
    last = max((part.segment for each in batch.partitions for part in each), default=0)
    if not last:
        return [batch]
    return [
        replace(
            batch,
            partitions=[
                [part for part in each if part.segment == number] for each in batch.partitions
            ],
        )
        for number in range(last + 1)
    ]


def together(segments: Sequence[Batch]) -> Batch:
    """Return a batch whose partitions are those of all segments, for facts about the whole."""
    return replace(segments[0], partitions=[each for one in segments for each in one.partitions])
