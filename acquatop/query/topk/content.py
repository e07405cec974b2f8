"""Content of top-k queries without aggregates: each member's candidates, and a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from acquatop.answer.expected_quality import ContentOfStream
from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.pane_best import PaneBest, PaneFound, PaneRequest, panes_in
from acquatop.ingest.reduce.replica_view import ReplicaView
from acquatop.ingest.scoring import typed_variables
from acquatop.plan.bound import BoundQuery
from acquatop.plugins import STRATEGIES
from acquatop.query.topk.pruned import PrunedTopKN
from acquatop.query.topk.refilled import RefilledTopKN
from acquatop.query.topk.retained import RetainedTopKN
from replica.store import JoinedStore

_SAMPLE = "sample"

AnyTopKN = PrunedTopKN | RefilledTopKN | RetainedTopKN


class _Sampling(Protocol):
    """Sample of the solutions that the open windows hold."""

    @property
    def content(self) -> ContentOfStream | None: ...
    @property
    def room(self) -> int: ...
    def add_pane(self, pane: Pane) -> None: ...
    def add_found(self, pane: PaneFound) -> None: ...
    def open_from(self, window: int) -> None: ...
    def snapshot(self) -> dict[str, bytes]: ...
    def resume(self, parts: Mapping[str, bytes]) -> None: ...


class _Sampled:
    """Sample for the expected quality of answers that join a remote."""

    def __init__(self, bound: BoundQuery) -> None:
        panes = 2 * -(-bound.windows.width_ms // bound.windows.slide_ms)
        self.content = ContentOfStream(bound.plan.score.stream_variables, panes=panes)

    @property
    def room(self) -> int:
        return self.content.room

    def add_pane(self, pane: Pane) -> None:
        self.content.add_pane(pane)

    def add_found(self, pane: PaneFound) -> None:
        self.content.add_sample(pane.first, pane.last, pane.sample, pane.count)

    def open_from(self, window: int) -> None:
        self.content.close_before(window)

    def snapshot(self) -> dict[str, bytes]:
        return {_SAMPLE: self.content.snapshot()}

    def resume(self, parts: Mapping[str, bytes]) -> None:
        self.content.resume(parts[_SAMPLE])


class _Unsampled:
    """No sample: without a service an answer's quality is known."""

    content = None
    room = 0

    def add_pane(self, pane: Pane) -> None: ...
    def add_found(self, pane: PaneFound) -> None: ...
    def open_from(self, window: int) -> None: ...
    def snapshot(self) -> dict[str, bytes]:
        return {}

    def resume(self, parts: Mapping[str, bytes]) -> None: ...


class CandidateContent:
    """Candidates of every member.

    If arrivals are distinct, reducers keep the best of each pane, and partitions are taken in as
    they come (:meth:`add`). Otherwise solutions come pane by pane (:meth:`add_pane`).
    """

    def __init__(self, bound: BoundQuery, store: JoinedStore | None) -> None:
        self._bound = bound
        self._store = store
        self._distinct = bound.arrivals == "distinct"
        self._rankings: dict[str, AnyTopKN] = {}
        self._members: dict[str, BoundQuery] = {}
        self._sample: _Sampling = _Sampled(bound) if bound.service else _Unsampled()
        self._view: ReplicaView | None = None
        self._is_changing = False
        """True if the close before has changed values of the replica."""

    def enrol(self, bound: BoundQuery) -> AnyTopKN:
        """Return the candidates of one more member."""
        refresh = bound.service.refresh if bound.service else None
        n = refresh.n if refresh else 0
        kind: type[AnyTopKN] = RefilledTopKN if bound.refills else PrunedTopKN
        kind = RetainedTopKN if bound.plan.finish is not None else kind
        ranking = kind(
            bound.plan,
            self._store,
            bound.windows,
            # A refilled list starts with N = 0: its controller finds how many are needed.
            n=0 if refresh and refresh.chooses_n else n,
            distinct=self._distinct,
            content=self._sample.content,
        )
        if isinstance(ranking, PrunedTopKN):
            ranking.keep_by(STRATEGIES[bound.listed_by])
        if isinstance(ranking, RetainedTopKN) and bound.drops_outlived:
            assert bound.plan.finish is not None, "what is retained is finished"
            ranking.drop_outlived(bound.plan.finish.per, bound.plan.finish.keys)
        self._rankings[bound.name], self._members[bound.name] = ranking, bound
        return ranking

    def leave(self, name: str) -> None:
        """Drop the candidates of a member."""
        self._rankings.pop(name, None)
        self._members.pop(name, None)

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducer that keeps the best of each pane by the replica's present values."""
        plan = self._bound.plan
        lists = [
            (self._members[name].plan.score, each.list) for name, each in self._rankings.items()
        ]
        return [
            PaneBest(
                self._bound.matcher,
                self._bound.windows,
                [PaneRequest(score, candidates.k + candidates.n) for score, candidates in lists],
                numbers=plan.score.stream_variables,
                terms=plan.stream_variables,
                view=self._present_view(),
                sampled=self._sample.room,
            )
        ]

    def reducers_ahead(self, *, may_close: bool) -> Sequence[Reducer] | None:
        """Return the same, unless a close is likely to change the replica's values.

        If it does, what was reduced by the values before is of no use. Values that are joined here
        come with the batch before.
        """
        joins_here = self._bound.plan.join is not None
        return None if joins_here or (may_close and self._is_changing) else self.reducers()

    def _present_view(self) -> ReplicaView | None:
        view = self._view
        if self._store is not None and (view is None or not view.is_current):
            names = {
                name: None
                for each in self._members.values()
                for name in each.plan.score.remote_variables
            }
            typed = {
                name: None
                for each in self._members.values()
                for name in typed_variables(each.plan.score)
            }
            self._view = ReplicaView(self._store, tuple(names), tuple(typed), view)
        return self._view

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Take in the best of each pane."""
        plan, late = self._bound.plan, 0
        for pane in panes_in(part.table, plan.score.stream_variables, plan.stream_variables):
            rankings = [self._rankings.get(name) for name in names]
            if closed is not None and pane.first <= closed:
                late += pane.count
                for late_for in rankings:
                    if late_for is not None:
                        late_for.note_late(pane.first, pane.last)
                continue
            self._sample.add_found(pane)
            for ranking, best in zip(rankings, pane.bests, strict=True):
                if ranking is not None:
                    ranking.add_best(best)
        return late

    def add_pane(self, pane: Pane) -> None:
        """Take in the solutions of one pane."""
        for ranking in self._rankings.values():
            ranking.add_pane(pane)
        self._sample.add_pane(pane)

    def note_late(self, first: int, last: int) -> None:
        """Note a late solution of the windows ``first`` to ``last``."""
        for ranking in self._rankings.values():
            ranking.note_late(first, last)

    def complete(self, window: int) -> None:
        """Note that a window closes; each ranking settles by itself."""
        self._is_changing = False

    def values_changed(self) -> None:
        """Drop the values that reducers are given."""
        self._is_changing = True
        if self._view is not None:
            self._view.is_current = False

    def open_from(self, window: int) -> None:
        """Release earlier solutions of the sample."""
        self._sample.open_from(window)

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state; each member keeps its candidates."""
        return self._sample.snapshot()

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self._sample.resume(parts)

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    def release(self) -> None:
        """Do nothing: there is nothing besides memory."""
