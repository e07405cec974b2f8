"""Set-up of queries whose aggregates per key are kept in the executors."""

from __future__ import annotations

from pathlib import Path
from uuid import uuid4

from acquatop.ingest.buckets.chunk_folder import ChunkFolder
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates.columns import aggregate_columns
from acquatop.query.aggregates.executor_content import ExecutorAggregates, RunTasks
from connectors.object_store.address import StoreAddress
from replica.maintainer import Maintainer
from replica.store import JoinedStore

_MOST_ASKED = 1_000
"""Maximum number of keys without a value that a bucket is asked for, whatever the budget."""


def scattered_content(
    bound: BoundQuery,
    maintainer: Maintainer[JoinedStore] | None,
    place: Path | StoreAddress,
    run: RunTasks,
    *,
    durable: bool,
    hashes: IdentityHash | None = None,
) -> ExecutorAggregates:
    """Return the content that keeps a query's aggregates at a place; make a folder if needed."""
    items = 0 if bound.service is None else bound.service.refresh.budget.items
    return ExecutorAggregates(
        aggregate_columns(bound),
        None if maintainer is None else maintainer.store,
        _folder(place, durable),
        run,
        buckets=bound.stream.buckets,
        # Twice as many as can be asked for: some may be under way already.
        asked=min(2 * items, _MOST_ASKED),
        hashes=hashes,
    )


def _folder(place: Path | StoreAddress, durable: bool) -> ChunkFolder:
    if not isinstance(place, Path):
        return ChunkFolder(str(place), durable, uuid4().bytes)
    place.mkdir(parents=True, exist_ok=True)
    # Executors have working folders of their own.
    return ChunkFolder(str(place.absolute()), durable)
