"""Queries whose keys' aggregates are kept in the executors: what they are made of."""

from __future__ import annotations

from pathlib import Path

from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.plan.bind import BoundQuery
from acquatop.query.aggregates.columns import aggregate_columns
from acquatop.query.aggregates.executor_content import RunTasks, ScatteredContent
from replica.maintainer import Maintainer
from replica.store import ReplicaStore

_MOST_ASKED = 1_000
"""How many keys without a value each bucket is asked for at most, however large the budget is."""


def scattered_content(
    bound: BoundQuery,
    maintainer: Maintainer[ReplicaStore] | None,
    folder: Path,
    run: RunTasks,
    *,
    durable: bool,
) -> ScatteredContent:
    """Return what keeps the aggregates of a query's keys as files in a folder, which is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    items = 0 if bound.service is None else bound.service.refresh.budget.items
    return ScatteredContent(
        aggregate_columns(bound),
        None if maintainer is None else maintainer.store,
        # Executors have working folders of their own.
        ChunkFolder(str(folder.absolute()), durable),
        run,
        buckets=bound.stream.buckets,
        # As many again as can be asked for: some may be on their way already.
        asked=min(2 * items, _MOST_ASKED),
    )
