"""Content of queries with aggregates per key, kept in the driver's memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from acquatop.errors import UserError
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.pane_partials import PanePartials
from acquatop.ingest.reduce.sent_partials import received
from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates.aggregates import Aggregates
from acquatop.query.aggregates.columns import aggregate_columns
from acquatop.query.aggregates.content import AggregateStore
from acquatop.query.aggregates.gathered import GatheredSolutions, GatheredTerms
from acquatop.query.aggregates.late_partials import split_late
from acquatop.query.aggregates.ranking import AggregateRanking
from acquatop.query.aggregates.rolled_up import RolledUpRanking
from acquatop.query.aggregates.whole_window import WholeWindowRanking
from replica.store import JoinedStore

_GATHERED = "gathered"
PLACE = "keys"
"""Part of a snapshot that is there if the keys have moved from the driver."""


class AggregatesInDriver(Aggregates[AggregateRanking | RolledUpRanking, AggregateStore]):
    """Aggregates per key, computed once and ranked by every member.

    If arrivals are distinct, reducers send partial aggregates (:meth:`add`). Otherwise solutions
    come pane by pane (:meth:`add_pane`).
    """

    def __init__(
        self, bound: BoundQuery, store: JoinedStore | None, hashes: IdentityHash | None
    ) -> None:
        latest_only = bound.arrivals == "latest" or bound.matcher.retracts
        assert bound.plan.aggregate is not None
        content = AggregateStore(
            aggregate_columns(bound),
            store,
            latest_only=latest_only,
            is_distinct=bound.plan.aggregate.is_distinct,
            hashes=hashes,
        )
        super().__init__(bound, store, content)
        self._gathered = GatheredSolutions(bound) if bound.plan.gathered else None

    def enrol(self, bound: BoundQuery) -> AggregateRanking | RolledUpRanking:
        """Return the ranking of one more member."""
        ranking = self._ranking(bound)
        self._rankings[bound.name] = ranking
        return ranking

    def _ranking(self, bound: BoundQuery) -> AggregateRanking | RolledUpRanking:
        plan, content = bound.plan, self._content
        n = bound.service.refresh.n if bound.service else 0
        if plan.roll_up is not None:
            assert self._store is not None
            return RolledUpRanking(plan, self._store, bound.windows, content, n=n)
        assert plan.aggregate is not None
        kind = AggregateRanking if plan.aggregate.keys else WholeWindowRanking
        gathered = None if self._gathered is None else GatheredTerms(self._gathered)
        return kind(plan, self._store, bound.windows, content, n=n, gathered=gathered)

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducer that makes partial aggregates per pane and key."""
        self._content.begin_batch()
        return [self._reducer()]

    def reducers_ahead(self, *, may_close: bool) -> Sequence[Reducer] | None:
        """Return the same, unless keys are to be released: partials on their way may need them."""
        return None if self._content.has_unused else [self._reducer()]

    def _reducer(self) -> Reducer:
        bound, content = self._bound, self._content
        hashes, known = content.codes.hashes, content.known
        return PanePartials(bound.matcher, bound.windows, content.columns, hashes, known)

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Take in partial aggregates."""
        found = split_late(received(part.table), closed)
        for first, last in found.spans:
            self._content.note_late(first, last)
        if len(found.in_time):
            self._content.add_partials(found.in_time)
        return found.count

    @property
    def kept(self) -> AggregateStore:
        """The aggregates."""
        return self._content

    def add_pane(self, pane: Pane) -> None:
        """Take in the solutions of one pane."""
        self._content.add_pane(pane)
        if self._gathered is not None:
            self._gathered.add_pane(pane)

    def open_from(self, window: int) -> None:
        """Release earlier solutions."""
        super().open_from(window)
        if self._gathered is not None:
            self._gathered.close_before(window)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""
        gathered = {} if self._gathered is None else {_GATHERED: self._gathered.snapshot()}
        return {**super().snapshot(), **gathered}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot; raise UserError if the keys have moved to executors."""
        if PLACE in parts:
            raise UserError(
                f"query {self._bound.name} cannot go on from what its state holds: its keys have "
                "moved to files of the executors\n"
                '  hint: take the old settings again (keys = "auto", and the refresh of its '
                "service), or use another directory"
            )
        super().resume(parts)
        if self._gathered is not None:
            self._gathered.resume(parts[_GATHERED])

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    def release(self) -> None:
        """Do nothing: there is nothing besides memory."""
