"""Content of queries with aggregates per key, kept in files that the executors read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acquatop.ingest.buckets.partials import FILE
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.plan.bind import BoundQuery
from acquatop.query.aggregates.executor_content import ExecutorAggregates
from acquatop.query.aggregates.executor_ranking import ExecutorRanking
from acquatop.query.aggregates.late_partials import split_late
from replica.store import ReplicaStore

_CONTENT = "content"


class AggregatesInExecutors:
    """Aggregates per key in files, a bucket of keys each; the driver knows files and best keys."""

    def __init__(self, bound: BoundQuery, store: ReplicaStore | None, content: ExecutorAggregates) -> None:
        self._bound = bound
        self._store = store
        self._content = content
        self._rankings: dict[str, ExecutorRanking] = {}

    def enrol(self, bound: BoundQuery) -> ExecutorRanking:
        """Return the ranking of one more member."""
        n = bound.service.refresh.n if bound.service else 0
        ranking = ExecutorRanking(bound.plan, self._store, bound.windows, self._content, n=n)
        self._rankings[bound.name] = ranking
        return ranking

    def leave(self, name: str) -> None:
        """Drop the ranking of a member."""
        ranking = self._rankings.pop(name, None)
        if ranking is not None:
            ranking.leave()

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducer that writes partial aggregates to files."""
        return [self._content.reducer(self._bound.matcher, self._bound.windows)]

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Take in the places of partial aggregates; late ones are left out."""
        found = split_late(part.table, closed)
        for first, last in found.spans:
            self._content.note_late(first, last)
        if found.count:
            self._content.leave_out(found.late.column(FILE).to_pylist())
        if len(found.in_time):
            self._content.add_partials(found.in_time)
        return found.count

    def complete(self, window: int) -> None:
        """Do nothing: the first ranking that settles has the files read."""

    def values_changed(self) -> None:
        """Do nothing: reducers do not see the replica."""

    def open_from(self, window: int) -> None:
        """Release files of earlier windows."""
        self._content.close_before(window)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state: the names of the files."""
        return {_CONTENT: self._content.snapshot()}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self._content.resume(parts[_CONTENT])

    def snapshot_committed(self) -> None:
        """Remove files that only older snapshots name."""
        self._content.saved()

    def release(self) -> None:
        """Remove all files, unless they belong to a state directory."""
        self._content.close()
