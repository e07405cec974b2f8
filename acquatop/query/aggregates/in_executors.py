"""Content of queries with aggregates per key, kept in files that the executors read."""

from __future__ import annotations

from collections.abc import Sequence

from acquatop.ingest.buckets.partials import FILE
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates.aggregates import Aggregates
from acquatop.query.aggregates.executor_content import ExecutorAggregates
from acquatop.query.aggregates.executor_ranking import ExecutorRanking
from acquatop.query.aggregates.late_partials import split_late


class AggregatesInExecutors(Aggregates[ExecutorRanking, ExecutorAggregates]):
    """Aggregates per key in files, a bucket of keys each; the driver knows files and best keys."""

    def enrol(self, bound: BoundQuery) -> ExecutorRanking:
        """Return the ranking of one more member."""
        n = bound.service.refresh.n if bound.service else 0
        ranking = ExecutorRanking(bound.plan, self._store, bound.windows, self._content, n=n)
        self._rankings[bound.name] = ranking
        return ranking

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducer that writes partial aggregates to files."""
        return [self._content.reducer(self._bound.matcher, self._bound.windows)]

    def reducers_ahead(self, *, may_close: bool) -> Sequence[Reducer] | None:
        """Return the same, unless a close needs the executors."""
        return None if may_close else self.reducers()

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Take in the places of partial aggregates; late ones are left out."""
        found = split_late(part.table, closed)
        for first, last in found.spans:
            self._content.note_late(first, last)
        if len(found.in_time):
            self._content.add_partials(found.in_time)
        # Last: a file may have other panes that are in time.
        if found.count:
            self._content.leave_out(found.late.column(FILE).to_pylist())
        return found.count

    @property
    def kept(self) -> ExecutorAggregates:
        """The aggregates."""
        return self._content

    def snapshot_committed(self) -> None:
        """Remove files that only older snapshots name."""
        self._content.snapshot_committed()

    def release(self) -> None:
        """Remove all files, unless they belong to a state directory."""
        self._content.close()
