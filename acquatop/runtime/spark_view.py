"""Names and figures of an engine's work in Spark's own views: its pages, listeners and logs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from acquatop.ingest.reduce.contract import Part

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_DESCRIPTION = "spark.job.description"
_ROWS = "numOutputRows"
_SHOWN = 3
"""Number of queries that a job's description names."""


def free_name(spark: SparkSession, stream: str) -> str:
    """Return a name for a stream's query that no active one has."""
    taken = {query.name for query in spark.streams.active}
    names = (stream, *(f"{stream} {at}" for at in range(2, len(taken) + 3)))
    return next(f"acquatop {each}" for each in names if f"acquatop {each}" not in taken)


def query_named(spark: SparkSession, name: str) -> StreamingQuery | None:
    """Return the active query of a name, which may have begun before its starter knows it."""
    return next((query for query in spark.streams.active if query.name == name), None)


def purpose(stream: str, batch: int, queries: Sequence[str], part: int = 1) -> str:
    """Return the description of the work on a batch, or on a later part of it.

    >>> purpose("urn:s", 3, ["top", "sums"])
    '<urn:s>, batch 3: top, sums'
    >>> purpose("urn:s", 3, ["top"], part=2)
    '<urn:s>, batch 3, part 2: top'
    >>> purpose("urn:s", 3, ["a", "b", "c", "d", "e"])
    '<urn:s>, batch 3: a, b, c and 2 more'
    """
    shown, others = list(queries[:_SHOWN]), len(queries) - _SHOWN
    more = f" and {others} more" if others > 0 else ""
    what = f"<{stream}>, batch {batch}" + (f", part {part}" if part > 1 else "")
    return what + (f": {', '.join(shown)}{more}" if shown else "")


@contextmanager
def described(spark: SparkSession, text: str) -> Iterator[None]:
    """Give the block's jobs and stages a description."""
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    context.setJobDescription(f"acquatop {text}")
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)  # type: ignore[arg-type]  # None removes it


def rows_in(partitions: Sequence[Sequence[Part]]) -> int:
    """Return the number of records that a batch's parts were made of."""
    return sum(
        max((part.facts.events for part in parts if part.segment == segment), default=0)
        for parts in partitions
        for segment in {part.segment for part in parts}
    )


def note_rows(query: StreamingQuery | None, rows: int) -> None:
    """Add rows to what a streaming query reports of its batch.

    Spark counts only rows that pass through its own operators. There is no way to tell it of others
    but the metric of the batch's plan, and without that it reports none.
    """
    if query is None:
        return
    with suppress(Exception):  # its inner names may change, or its Java may have gone
        plan: Any = query._jsq.streamingQuery().lastExecution().executedPlan()
        leaves = plan.collectLeaves().iterator()
        while leaves.hasNext():
            metric = leaves.next().metrics().get(_ROWS)
            if metric.isDefined():
                metric.get().add(rows)
                return
