"""Queries that look at the same windows of the same stream: taken in once, refreshed once, answered one by one."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Sequence
from itertools import zip_longest

import numpy as np

from acquatop.answer.answer import Answer, Counts
from acquatop.answer.expected_quality import ContentOfStream
from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.ingest.buckets.partials import FILE
from acquatop.ingest.identity_hash import IdentityHash
from acquatop.ingest.panes import Pane, PaneBuffer
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.pane_best import Asked, PaneBest, panes_in
from acquatop.ingest.reduce.pane_partials import COUNT, FIRST, LAST, PanePartials
from acquatop.ingest.reduce.replica_view import ReplicaView
from acquatop.ingest.reduce.solutions import Solutions
from acquatop.plan.bind import BoundQuery
from acquatop.query.aggregates.content import AggregatedContent
from acquatop.query.aggregates.executor_content import ScatteredContent
from acquatop.query.aggregates.executor_ranking import Scattered
from acquatop.query.aggregates.ranking import Aggregated
from acquatop.query.contract import EMPTY_RUN, Held
from acquatop.query.counters import Tally
from acquatop.query.member import Closed, GroupMember
from acquatop.query.non_empty_windows import Occupancy
from acquatop.query.ranking import Intake
from acquatop.query.replica_facts import RemoteSide
from acquatop.query.topk.content import TopKN
from acquatop.refresh.lookup_cache import Glimpse
from acquatop.refresh.order import RefreshOrder
from acquatop.refresh.proposers import proposer_of, ranker_name
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import pack_parts, unpack_parts
from acquatop.windows import Windows
from connectors.mapping import TIME
from replica.budget import Spending
from replica.clocks import Clock
from replica.maintainer import Maintainer, Refreshed
from replica.rankers import DEFAULT_RANKERS, RankerRegistry
from replica.store import ReplicaStore

Operator = Aggregated | Scattered | TopKN


def group_key(bound: BoundQuery) -> str:
    """Return what queries must have in common to be one group."""
    plan, service = bound.plan, bound.service
    asked = (service.iri, plan.service.group, plan.service.variables) if service and plan.service else None
    return repr(
        (
            bound.stream.iri,
            bound.windows,
            bound.matcher.signature,
            plan.aggregate,
            asked,
            plan.join_variables,
            bound.refills,
            *((bound.stream.keys, bound.stream.buckets) if bound.keys_in_executors else ()),
        )
    )


class QueryGroup:
    """Queries with the same windows, pattern, aggregates and remote; they differ in scores, limits, and what they show.

    What the windows hold, the replica and what may be spent on it are theirs together: an evaluation is the close of
    a window, however many queries it answers. Free of any runtime: whoever has parts hands them in and takes the
    answers. These say what they can be expected to be worth, unless nobody ``expects`` them to. What was made of
    records for one group can be handed to another that has the same ``hashes``. Not safe for use by several threads at
    once.
    """

    def __init__(
        self,
        bound: BoundQuery,
        maintainer: Maintainer[ReplicaStore] | None,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        rankers: RankerRegistry = DEFAULT_RANKERS,
        random: np.random.Generator | None = None,
        scattered: ScatteredContent | None = None,
        expects: bool = True,
        hashes: IdentityHash | None = None,
    ) -> None:
        self.slide_ms = bound.windows.slide_ms
        self.maintainer = maintainer
        self.members: dict[str, GroupMember[Operator]] = {}
        self._bound = bound
        self.windows = bound.windows
        self._store = maintainer.store if maintainer else None
        self._glimpse = Glimpse(maintainer.store) if maintainer else None
        self._clock = clock
        self._wall_clock = wall_clock
        self._expects = expects
        self._refresher = _Refresher(bound, maintainer, rankers, random) if maintainer else None
        self._panes = PaneBuffer(bound.windows)
        self._occupancy = Occupancy(bound.windows)
        self._content = scattered or _content(bound, self._store, hashes)
        self._sample = _sample(bound) if self._store is not None and self._content is None else None
        self._next: int | None = 0 if bound.windows.t0_ms is not None else None
        self._closed: int | None = None
        self._tally = Tally()
        self._view: ReplicaView | None = None
        self._resumed: dict[str, bytes] = {}
        looks_at_panes = self._refresher is not None and self._refresher.proposer.looks_at_panes
        self._is_reduced = bound.stream.arrivals == "distinct" and not bound.refills and not looks_at_panes
        assert self._is_reduced or scattered is None, "what is not reduced where it is cannot be kept there"

    # Queries come and go --------------------------------------------------------------------------

    def join(self, bound: BoundQuery, after_ms: int | None = None) -> GroupMember[Operator]:
        """Answer one more query, from the first window on that opens at a time or after it."""
        since = None if after_ms is None else self.windows.opening_from(after_ms)
        if since is not None and self._next is not None:
            since = max(since, self._next)
        refresh = bound.service.refresh if bound.service else None
        n = refresh.n if refresh else 0
        operator: Operator
        if isinstance(self._content, ScatteredContent):
            operator = Scattered(bound.plan, self._store, bound.windows, self._content, n=n)
        elif self._content is not None:
            operator = Aggregated(bound.plan, self._store, bound.windows, self._content, n=n)
        else:
            distinct = bound.stream.arrivals == "distinct"
            operator = TopKN(
                bound.plan,
                self._store,
                bound.windows,
                # As many as are needed are found from there; more than that cost more than a refill.
                n=0 if refresh and refresh.chooses_n else n,
                refill=bound.refills,
                distinct=distinct,
                content=self._sample,
            )
        if since is not None:
            operator.close_before(since)
        member = GroupMember(bound, operator, self._remote_side(operator, bound.plan.offset), since)
        self.members[bound.name] = member
        return member

    def _remote_side(self, operator: Operator, offset: int) -> RemoteSide | None:
        if self.maintainer is None or self._glimpse is None:
            return None
        return RemoteSide(operator, self.maintainer, self._glimpse, offset, expects=self._expects)

    def leave(self, name: str) -> None:
        """Answer a query no more."""
        member = self.members.pop(name, None)
        if member is not None and isinstance(member.operator, Aggregated | Scattered):
            member.operator.leave()

    def close(self) -> None:
        """Let go of what tells of the remote's changes: the queries are over."""
        if self.maintainer is not None:
            self.maintainer.close()
        if isinstance(self._content, ScatteredContent):
            self._content.close()

    # Parts in -------------------------------------------------------------------------------------

    def reducers(self) -> Sequence[Reducer]:
        """Return what to make of the stream's records, with the replica's values as they are now."""
        matcher, windows = self._bound.matcher, self.windows
        if not self._is_reduced:
            return [Solutions(matcher, windows)]
        if isinstance(self._content, ScatteredContent):
            return [self._content.reducer(matcher, windows)]
        if self._content is not None:
            return [PanePartials(matcher, windows, self._content.columns, self._content.codes.hashes)]
        asked = [Asked(each.bound.plan.score, each.topkn.list.k + each.topkn.list.n) for each in self.members.values()]
        plan = self._bound.plan
        return [
            PaneBest(
                matcher,
                windows,
                asked,
                numbers=plan.score.stream_variables,
                terms=plan.stream_variables,
                view=self._present_view(),
                sampled=self._sample.room if self._sample is not None else 0,
            )
        ]

    def add(self, parts: Sequence[Part], names: Sequence[str] | None = None) -> None:
        """Take in what one partition comes to: a part for each of the reducers.

        ``names`` are the members when these were made; without it they are the members now.
        """
        part = parts[0]
        self._tally.note(part.facts.events, part.facts.bad or {})
        self._occupancy.note(part.panes, part.facts.earliest_ms)
        if not self._is_reduced:
            late = self._panes.add(part.table)
            self._tally.late += len(late)
            if len(late):
                self._note_late(*self.windows.spans(np.asarray(late.column(TIME).to_numpy())))
        elif self._content is not None:
            self._add_partials(part)
        else:
            self._add_best(part, list(self.members) if names is None else names)

    def _add_partials(self, part: Part) -> None:
        assert self._content is not None
        table = part.table
        firsts = np.asarray(table.column(FIRST).to_numpy())
        late = firsts <= self._closed if self._closed is not None else np.zeros(len(firsts), dtype=np.bool_)
        if late.any():
            self._tally.late += int(np.asarray(table.column(COUNT).to_numpy())[late].sum())
            self._note_late(firsts[late], np.asarray(table.column(LAST).to_numpy())[late])
            if isinstance(self._content, ScatteredContent):
                self._content.leave_out(table.filter(late).column(FILE).to_pylist())
            table = table.filter(~late)
        if len(table):
            self._content.add_partials(table)

    def _add_best(self, part: Part, names: Sequence[str]) -> None:
        plan = self._bound.plan
        for pane in panes_in(part.table, plan.score.stream_variables, plan.stream_variables):
            is_late = self._closed is not None and pane.first <= self._closed
            if is_late:
                self._tally.late += pane.count
            elif self._sample is not None:
                self._sample.add_sample(pane.first, pane.last, pane.sample, pane.count)
            for name, best in zip(names, pane.bests, strict=True):
                member = self.members.get(name)
                if member is not None and is_late:
                    member.topkn.note_late(pane.first, pane.last)
                elif member is not None:
                    member.topkn.add_best(best)

    def _note_late(self, firsts: IntArray, lasts: IntArray) -> None:
        for first, last in set(zip(firsts.tolist(), lasts.tolist(), strict=True)):
            for intake in self._intakes():
                intake.note_late(first, last)

    def _intakes(self) -> Sequence[Intake]:
        if self._content is not None:
            return [self._content]
        return [member.topkn for member in self.members.values()]

    def _add_pane(self, pane: Pane) -> None:
        for intake in self._intakes():
            intake.add_pane(pane)
        if self._sample is not None:
            self._sample.add_pane(pane)
        if self._refresher is not None:
            self._refresher.proposer.add_pane(pane)

    def _present_view(self) -> ReplicaView | None:
        if self._store is None or self._refresher is None:
            return None
        if self._view is None:
            names = {name: None for each in self.members.values() for name in each.bound.plan.score.remote_variables}
            self._view = ReplicaView.of(self._store, tuple(names))
        return self._view

    # Answers out ----------------------------------------------------------------------------------

    def advance(
        self, watermark_ms: int, due_at: float | None = None, longest_wait: float = math.inf
    ) -> Iterator[Answer]:
        """Yield the answers of all windows that close at the watermark or before it: see :class:`Group`."""
        due_at = self._clock() if due_at is None else due_at
        if not self._begin(watermark_ms):
            return
        while self._next is not None and self.windows.bounds(self._next)[1] <= watermark_ms:
            if self._skip_empty(watermark_ms):
                continue
            yield from self._evaluate(self._next, due_at, longest_wait)
            self._go_to(self._next + 1)

    def finish(self) -> Iterator[Answer]:
        """Yield the answers of all windows that still hold events, as if time went on after the last of them."""
        last = self._occupancy.last
        if last is not None:
            yield from self.advance(self.windows.bounds(last)[1])

    def _begin(self, watermark_ms: int) -> bool:
        """Find the first window to answer, once it is sure which that is."""
        sinces = [member.since for member in self.members.values()]
        if self._next is None and None in sinces:
            earliest = self._occupancy.earliest_ms
            if earliest is not None and earliest <= watermark_ms:
                self._next = self.windows.first(earliest)
        known = [since for since in sinces if since is not None]
        if known and len(known) == len(sinces):
            # Earlier windows began without any of the queries: what lies only in them is not wanted.
            first = min(known)
            if self._next is None or self._next < first:
                self._go_to(first)
        return self._next is not None and bool(sinces)

    def _go_to(self, window: int) -> None:
        self._next = window
        for member in self.members.values():
            member.operator.close_before(window)
        if self._content is not None:
            self._content.close_before(window)
        if self._sample is not None:
            self._sample.close_before(window)

    def _skip_empty(self, watermark_ms: int) -> bool:
        assert self._next is not None
        if not self._occupancy.is_empty:
            return False
        until, occupied = self.windows.first(watermark_ms + 1), self._occupancy.next
        run = (until if occupied is None else min(until, occupied)) - self._next
        if run <= EMPTY_RUN:
            return False
        self._tally.skipped += run
        self._closed = self._next + run - 1
        self._occupancy.close(self._closed)
        self._panes.close_until(self.windows.bounds(self._closed)[1])
        self._go_to(self._next + run)
        return True

    def _evaluate(self, window: int, due_at: float, longest_wait: float) -> Iterator[Answer]:
        self._occupancy.close(window)
        self._closed = window
        opens_ms, closes_ms = self.windows.bounds(window)
        for pane in self._panes.take_until(closes_ms):
            self._add_pane(pane)
        members = list(self.members.values())
        for member in members:
            member.operator.settle(window)
        refreshed = self._refresh(members, window, closes_ms, longest_wait)
        for member in members:
            member.operator.apply_changes(refreshed.changed)
        if refreshed.changed:
            self._view = None
        if self._glimpse is not None:
            self._glimpse.renew()
        closed = Closed(window, opens_ms, closes_ms, refreshed, self._take_counts(refreshed), due_at)
        for member in members:
            if member.has_begun(window) and member.bound.name in self.members:
                yield member.answer(closed, self._clock, self._wall_clock)

    def _refresh(
        self, members: Sequence[GroupMember[Operator]], window: int, closes_ms: int, longest_wait: float
    ) -> Refreshed:
        if self._refresher is None:
            return Refreshed(frozenset(), (), Spending(), 0, None)
        begun = [member for member in members if member.has_begun(window)]
        return self._refresher.refresh(begun, window, closes_ms, longest_wait)

    def _take_counts(self, refreshed: Refreshed) -> Counts:
        return self._tally.take(0, refreshed.ambiguous, refreshed.rejected)

    def closed(self) -> Sequence[tuple[Windows, int | None]]:
        """Return the windows that all members have, and the last that has closed."""
        return [(self.windows, self._closed)]

    def held(self, name: str) -> Held:
        """Return how many candidates a member has, and how many keys the replica."""
        candidates = len(self.members[name].operator.list) if name in self.members else 0
        return Held(candidates, 0 if self._store is None else len(self._store))

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here. O(all that is held)."""
        parts = {
            "numbers": json.dumps([self._next, self._closed]).encode(),
            "panes": self._panes.snapshot(),
            "occupancy": self._occupancy.snapshot(),
            "tally": self._tally.snapshot(),
        }
        if self._content is not None:
            parts["content"] = self._content.snapshot()
        if self._sample is not None:
            parts["sample"] = self._sample.snapshot()
        if self._refresher is not None:
            parts["refresher"] = self._refresher.snapshot()
        parts |= {f"member {name}": member.snapshot() for name, member in self.members.items()}
        return pack_parts(parts)

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot: on a new group, before any query joins, with the same arguments."""
        parts = unpack_parts(snapshot)
        self._next, self._closed = json.loads(parts["numbers"])
        self._panes.resume(parts["panes"])
        self._occupancy.resume(parts["occupancy"])
        self._tally = Tally.restore(parts["tally"])
        if self._refresher is not None:
            self._refresher.resume(parts["refresher"])
        if self._content is not None:
            # After the replica: it looks up where that has its keys.
            self._content.resume(parts["content"])
        if self._sample is not None:
            self._sample.resume(parts["sample"])
        self._resumed = parts

    def saved(self) -> None:
        """Note that the last snapshot is safe."""
        if isinstance(self._content, ScatteredContent):
            self._content.saved()

    def rejoin(self, bound: BoundQuery) -> GroupMember[Operator] | None:
        """Let a query go on that was a member when the snapshot was taken; None if it was none."""
        part = self._resumed.get(f"member {bound.name}")
        if part is None:
            return None
        member = self.join(bound)
        member.resume(part)
        return member


class _Refresher:
    """A group's replica, and who says what of it to refresh."""

    def __init__(
        self,
        bound: BoundQuery,
        maintainer: Maintainer[ReplicaStore],
        rankers: RankerRegistry,
        random: np.random.Generator | None,
    ) -> None:
        assert bound.service is not None
        refresh = bound.service.refresh
        self.proposer = proposer_of(refresh.policy, maintainer.store)
        self._maintainer = maintainer
        self._order = RefreshOrder(
            maintainer.store,
            rankers[ranker_name(refresh.policy)](),
            slide_ms=bound.windows.slide_ms,
            ask_absent_after=bound.service.ask_absent_after,
            random=random or np.random.default_rng(0),
        )

    def refresh(
        self, members: Sequence[GroupMember[Operator]], window: int, closes_ms: int, longest_wait: float
    ) -> Refreshed:
        """Refresh what a window that closes needs most: each query in turn says what that is to it."""
        store, keeper = self._maintainer.store, self._maintainer
        keeper.begin(closes_ms)
        self.proposer.close_before(window)
        limit = keeper.budget.items + keeper.keys_under_way
        orders = [self._keys(member, window, limit) for member in members] if limit else []
        if store.limit is not None:
            for member in members:
                store.touch(store.rows(list(member.operator.needed())))
        return keeper.fetch(_in_turn(orders), longest_wait)

    def _keys(self, member: GroupMember[Operator], window: int, limit: int) -> list[str]:
        now, operator = self._maintainer.now(), member.operator
        beyond = self.proposer.looks_beyond_candidates
        wanted = operator.wanted(window, limit, self._order.absent_before(now), beyond_candidates=beyond)
        proposed = self.proposer.propose(window, wanted.held)
        return self._order(
            wanted.unknown, proposed, wanted.absent, window=window, k=operator.k, now=now, scoring=operator.scoring
        )

    def snapshot(self) -> bytes:
        """Return the replica with all that is known of it, and what the order depends on."""
        return pack_parts(
            {
                "maintainer": self._maintainer.snapshot(),
                "order": self._order.snapshot(),
                "proposer": self.proposer.snapshot(),
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Go on from a snapshot."""
        parts = unpack_parts(snapshot)
        self._maintainer.resume(parts["maintainer"])
        self._order.resume(parts["order"])
        self.proposer.resume(parts["proposer"])


def _in_turn(orders: Sequence[list[str]]) -> list[str]:
    """Return keys in the order in which to ask: the first of each, then the second of each, each once.

    >>> _in_turn([["a", "b", "c"], ["d", "a"]])
    ['a', 'd', 'b', 'c']
    """
    if len(orders) == 1:
        return orders[0]
    rows = zip_longest(*orders)
    return list(dict.fromkeys(key for row in rows for key in row if key is not None))


def _sample(bound: BoundQuery) -> ContentOfStream:
    """Return what keeps a part of what the windows hold, of queries without aggregates."""
    panes = 2 * -(-bound.windows.width_ms // bound.windows.slide_ms)
    return ContentOfStream(bound.plan.score.stream_variables, panes=panes)


def _content(bound: BoundQuery, store: ReplicaStore | None, hashes: IdentityHash | None) -> AggregatedContent | None:
    """Return what keeps the aggregates of a group whose queries have any."""
    if bound.plan.aggregate is None:
        return None
    latest_only = bound.stream.arrivals == "latest"
    return AggregatedContent(aggregate_columns(bound), store, latest_only=latest_only, hashes=hashes)


def aggregate_columns(bound: BoundQuery) -> AggregateColumns:
    """Return the aggregates of a query that has any."""
    aggregate = bound.plan.aggregate
    assert aggregate is not None
    datatypes = {each.of: bound.matcher.datatype(each.of) for each in aggregate.columns if each.of is not None}
    return AggregateColumns(aggregate.columns, datatypes)
