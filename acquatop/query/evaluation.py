"""Evaluation of top-k queries with the same windows, pattern, aggregates and remote."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from acquatop.answer.answer import Answer, Counts
from acquatop.answer.assembly import ClosedWindow
from acquatop.answer.estimate import Estimate, worst
from acquatop.answer.window_lists import WindowLists
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.plugins import RANKERS
from acquatop.query.aggregates.executor_content import ExecutorAggregates
from acquatop.query.aggregates.moving import Move, MovingAggregates
from acquatop.query.contents import content_of
from acquatop.query.contract import Sizes, Tick
from acquatop.query.joined_remote import remote_of
from acquatop.query.member import Member, ShownBindings
from acquatop.query.ranking import ChangingRanking
from acquatop.query.schedule.one_window import OneWindow
from acquatop.query.topk.ranking import TopKN
from acquatop.refresh.join_refresh import JoinRefresh
from acquatop.refresh.lanes import Lanes
from acquatop.refresh.open_replicas import Joined
from acquatop.refresh.replica_refresh import RankingNeeds, ReplicaRefresh
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.clocks import Clock
from replica.maintainer import Refreshed
from replica.rankers import RankerRegistry

_SHOWN = 16
"""Number of solutions, for each one that is wanted, whose bindings are remembered."""


class _Inquired(NamedTuple):
    """Window that closes, what its rankings want of the remote, and what was forgotten before."""

    window: int
    needs: Sequence[RankingNeeds]
    forgotten: int


class TopKEvaluation:
    """Top-k queries over the same content of the same windows.

    They differ in scores, limits and projections. They share the content, the replica and its
    budget: one evaluation per close of a window. If ``expects`` is False, expected quality is not
    estimated. Parts made for one evaluation can be handed to another with the same ``hashes``.
    NOW() is the ``instant`` of a close. In ``lanes`` budgets are shared with other evaluations
    (:class:`~acquatop.query.contract.BudgetSharer`). Not thread-safe.
    """

    def __init__(
        self,
        bound: BoundQuery,
        maintainer: Joined | None,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        rankers: RankerRegistry = RANKERS,
        random: np.random.Generator | None = None,
        scattered: ExecutorAggregates | None = None,
        move: Move | None = None,
        expects: bool = True,
        hashes: IdentityHash | None = None,
        instant: Callable[[int], int] = int,
        lanes: Lanes | None = None,
    ) -> None:
        self.slide_ms = bound.windows.slide_ms
        self.lanes = lanes or Lanes()
        self.maintainer = maintainer
        self.members: dict[str, Member[ChangingRanking]] = {}
        self._windows = bound.windows
        self._clock = clock
        self._wall_clock = wall_clock
        self._instant = instant
        self._remote = remote_of(
            bound, maintainer, rankers, random, clock=clock, expects=expects, lanes=self.lanes
        )
        self._schedule = OneWindow(bound.windows)
        self._content = content_of(bound, self._remote, scattered, move, hashes)
        self._open: int | None = None
        """First window that is open; None before the first close."""
        self._inquired: _Inquired | None = None
        """Window whose needs have been offered to the pool."""
        self._resumed: Mapping[str, bytes] = {}

    # Queries come and go --------------------------------------------------------------------------

    @property
    def names(self) -> Sequence[str]:
        """Names of the members."""
        return list(self.members)

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Add a member, from the first window on that opens at a time or later."""
        assert isinstance(bound, BoundQuery)
        time_ms = after_ms.get(bound.stream.iri)
        self._enrol(bound, None if time_ms is None else self._schedule.cursor.first_after(time_ms))

    def resume_query(self, bound: Bound) -> bool:
        """Continue a member of the snapshot."""
        assert isinstance(bound, BoundQuery)
        part = self._resumed.get(f"member {bound.name}")
        if part is not None:
            self._enrol(bound, None).resume(part)
        return part is not None

    def _enrol(self, bound: BoundQuery, since: int | None) -> Member[ChangingRanking]:
        ranking = self._content.enrol(bound)
        if since is not None:
            ranking.close_before(since)
        self.lanes.join(bound.name, bound.weight)
        member = self.members[bound.name] = Member(
            bound,
            ranking,
            clock=self._clock,
            wall_clock=self._wall_clock,
            facts=self._remote.facts(ranking, bound.plan.offset),
            since=since,
            shown=ShownBindings(_SHOWN * ranking.k) if bound.is_nearest_over_time else None,
            instant=self._instant,
        )
        return member

    def leave(self, name: str) -> None:
        """Drop a member."""
        if self.members.pop(name, None) is not None:
            self._content.leave(name)
            self.lanes.leave(name)

    def close(self) -> None:
        """Close the replica's feed, and release the content's files."""
        self.lanes.close()
        self._remote.close()
        self._content.release()

    # Parts in -------------------------------------------------------------------------------------

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return the content's reducers."""
        self._move_keys()
        return self._content.reducers()

    def reducers_ahead(self, stream: str, watermark_ms: int) -> Sequence[Reducer] | None:
        """Return the content's reducers for records behind a batch that is still to be added."""
        closes_ms = self._schedule.cursor.next_close_ms
        may_close = closes_ms is None or closes_ms <= watermark_ms
        return self._content.reducers_ahead(may_close=may_close)

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Take in one partition."""
        (part,) = parts
        self._move_keys(part)
        self._schedule.counters.note(part.facts.events, part.facts.bad or {})
        self._schedule.note(part.panes, part.facts.earliest_ms)
        closed = self._schedule.cursor.closed
        self._schedule.counters.late += self._content.add(part, names, closed)

    def _move_keys(self, part: Part | None = None) -> None:
        """Move the keys to the executors or back, if they are due."""
        content = self._content
        if isinstance(content, MovingAggregates) and content.is_due(part) and content.move(part):
            for member in self.members.values():
                ranking = content.enrol(member.bound)
                member.rank_by(ranking, self._remote.facts(ranking, member.bound.plan.offset))

    # Answers out ----------------------------------------------------------------------------------

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows, and how far they are answered."""
        return self._schedule.windows(stream)

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the close of the next window."""
        return self._schedule.due_after(stream, time_ms)

    def advance(self, tick: Tick) -> Iterator[Answer]:
        """Yield the answers of all windows that close at the watermark or before it."""
        if self._inquired is not None:
            yield from self._answers(self._inquired, tick)
        first = self._begin(tick.watermark_ms)
        if first is None:
            return
        self._open_from(first)
        for due in self._schedule.due(tick.watermark_ms):
            (window,) = due.closed.values()
            self._content.complete(window)
            if due.is_skipped:
                self._open_from(window + 1)
            else:
                yield from self._answers(self._inquire(window), tick)

    def _begin(self, watermark_ms: float) -> int | None:
        """Return the next window to answer; None while it is not known."""
        return self._schedule.begin(
            watermark_ms, [member.since for member in self.members.values()]
        )

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers of all windows that still hold records."""
        until_ms = self._schedule.end(stream)
        if until_ms > -math.inf:
            yield from self.advance(Tick(stream, int(until_ms), self._clock()))
        self.lanes.close()  # nothing is kept for who does not come any more

    def _inquire(self, window: int) -> _Inquired:
        """Begin the refresh of a window; return what its rankings want."""
        forgotten = self._forgotten
        members = list(self.members.values())
        for member in members:
            member.operator.settle(window)
        begun = [member for member in members if member.has_begun(window)]
        refresh, closes_ms = self._remote.refresh, self._windows.bounds(window)[1]
        inquiry = refresh.begin(window, self._instant(closes_ms))
        needs = [
            RankingNeeds(
                each.operator.wanted(window, inquiry),
                each.operator.k,
                each.operator.scoring,
                each.bound.name,
                each.bound.weight,
            )
            for each in (begun if inquiry.limit else ())
        ]
        if inquiry.touches:
            for member in begun:
                refresh.touch(member.operator.needed())
        return _Inquired(window, needs, forgotten)

    def _answers(self, inquired: _Inquired, tick: Tick) -> Iterator[Answer]:
        """Yield the answers of a window that has been inquired about, and release it."""
        self._inquired = None
        window = inquired.window
        opens_ms, closes_ms = self._windows.bounds(window)
        refreshed = self._remote.refresh.fetch(window, inquired.needs, tick.longest_wait)
        for member in self.members.values():
            member.operator.apply_changes(refreshed.changed, refreshed.first)
        if refreshed.changed or self._forgotten != inquired.forgotten:
            self._content.values_changed()
        self._remote.renew_lookups()
        closed, counts = (
            ClosedWindow(window, opens_ms, closes_ms, tick.due_at),
            self._take_counts(refreshed),
        )
        expected: list[Estimate] = []
        for member in list(self.members.values()):
            if member.has_begun(window) and member.bound.name in self.members:
                counted = counts.with_unscored(member.operator.unscored(window))
                answer = member.answer(closed, counted, refreshed)
                expected += [] if answer.expected is None else [answer.expected]
                yield answer
        if expected:
            self._remote.refresh.note_quality(worst(expected))
        self._open_from(window + 1)

    @property
    def _forgotten(self) -> int:
        """Number of times that the replica has forgotten a key."""
        store = self._remote.store
        return 0 if store is None else store.forgotten

    # A budget shared with others ------------------------------------------------------------------

    def due_by(self, watermark_ms: float) -> int | None:
        """Return the close of the next window, if it is due at a watermark."""
        if self._begin(watermark_ms) is None:
            return None
        closes_ms = self._schedule.next_close_ms
        is_due = closes_ms is not None and closes_ms <= watermark_ms
        return closes_ms if is_due else None

    def last_due_ms(self, stream: str) -> float:
        """Return the time up to which windows are due when the stream ends."""
        return self._schedule.end(stream)

    def expect(self) -> None:
        """Tell the pool that the next window is due."""
        self.lanes.expect(sum(member.bound.weight for member in self.members.values()))

    def offer(self, watermark_ms: int) -> None:
        """Tell the pool what the next window, due at a watermark, wants of the remote."""
        first = self._begin(watermark_ms)
        due = None if first is None else next(self._schedule.due(watermark_ms), None)
        if first is None or due is None:
            return
        self._open_from(first)
        (window,) = due.closed.values()
        self._content.complete(window)
        if due.is_skipped:
            self._open_from(window + 1)
            return
        refresh, self._inquired = self._remote.refresh, self._inquire(window)
        assert isinstance(refresh, ReplicaRefresh | JoinRefresh), "others share no budget"
        refresh.offer(window, self._inquired.needs)

    def _open_from(self, window: int) -> None:
        """Release all that lies only in earlier windows."""
        if window == self._open:
            return
        self._open = window
        for member in self.members.values():
            member.operator.close_before(window)
        self._content.open_from(window)

    def _take_counts(self, refreshed: Refreshed) -> Counts:
        return self._schedule.counters.take(0, refreshed.ambiguous, refreshed.rejected)

    def sizes(self, name: str) -> Sizes:
        """Return the number of candidates of a member, and of keys in the replica."""
        candidates = len(self.members[name].operator.list) if name in self.members else 0
        return Sizes(candidates, self._remote.keys)

    def lists(self, name: str) -> Sequence[WindowLists]:
        """Return the lists of a member's open windows; none of aggregates."""
        member = self.members.get(name)
        if member is None or not isinstance(member.operator, TopKN):
            return ()
        return list(member.operator.lists(member.score_of))

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state. O(all that is held)."""
        return pack_parts(
            {
                **self._schedule.snapshot(),
                **self._remote.refresh.snapshot(),
                **self._content.snapshot(),
                **{f"member {name}": member.snapshot() for name, member in self.members.items()},
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot of an evaluation with the same arguments."""
        parts = unpack_parts(snapshot)
        self._schedule.resume(parts)
        # The content looks up the rows of its keys, so the replica comes first.
        self._remote.refresh.resume(parts)
        self._content.resume(parts)
        self._resumed = parts

    def snapshot_committed(self) -> None:
        """Note that the last snapshot is durable."""
        self._content.snapshot_committed()
