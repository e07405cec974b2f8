"""Facts of a batch for observers."""

from __future__ import annotations

from acquatop.engine.observer import BatchSeen
from acquatop.ingest.place import Place
from acquatop.runtime import Batch


def batch_seen(
    stream: str, batch: Batch, *, late: int, watermark_ms: int | None, seconds: float
) -> BatchSeen:
    """Return the facts of a batch; ``seconds`` is the time for its answers."""
    bad: dict[str, int] = {}
    bad_at: dict[str, Place] = {}
    first = [partition[0].facts for partition in batch.partitions if partition]
    for facts in first:
        for reason, count in (facts.bad or {}).items():
            bad[reason] = bad.get(reason, 0) + count
        bad_at = {**(facts.bad_at or {}), **bad_at}
    return BatchSeen(
        stream=stream,
        events=sum(facts.events for facts in first),
        bad=bad,
        bad_at=bad_at,
        late=late,
        sent_rows=sum(len(part.table) for partition in batch.partitions for part in partition),
        sent_bytes=sum(part.nbytes for partition in batch.partitions for part in partition),
        partitions=len(batch.partitions),
        watermark_ms=watermark_ms,
        reduce_seconds=batch.seconds,
        evaluate_seconds=seconds,
        done=batch.done,
        total=batch.total,
        repeated=batch.repeated,
    )


def has_times(batch: Batch) -> bool:
    """Return True if a batch has events with a time: bad records have none."""
    first = (partition[0].facts for partition in batch.partitions if partition)
    return any(facts.newest_ms is not None for facts in first)
