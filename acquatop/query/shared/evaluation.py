"""Evaluation of queries that rank one stream by one score, each with windows and k of its own."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from acquatop.answer.answer import Answer
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.shared_best import SharedBest, SharedRequirements, panes_of, scored_of
from acquatop.plan.bind import Bound, BoundQuery
from acquatop.query.contract import MAX_EMPTY_WINDOWS, Sizes, Tick, next_close
from acquatop.query.lateness import ArrivalWatermarks
from acquatop.query.member import ShownBindings
from acquatop.query.shared.late_solutions import LateSolutions
from acquatop.query.shared.member import SharedMember
from acquatop.query.shared.pane_log import PaneLog
from acquatop.topk.pane_top import Scored
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.shared.periodic_times import BEFORE_ALL, PeriodicTimes
from acquatop.topk.shared.shared_skyline import SharedSkyline
from acquatop.topk.snapshot import pack_parts, unpack_parts
from acquatop.windows import Windows
from replica.clocks import Clock

_LOG_ROOM = 4_096
"""Growth of the log of panes after which panes that no query needs are dropped."""


class SharedEvaluation:
    """Queries without a remote, over a stream whose arrivals are distinct: scores never change.

    Records are reduced once for all queries, to those that any may need, and the driver holds one
    list of candidates. A record that is late for one query may still belong to windows of others:
    it is kept beside the list. Independent of any runtime. Not thread-safe.
    """

    def __init__(
        self, bound: BoundQuery, *, clock: Clock = time.monotonic, wall_clock: Clock = time.time
    ) -> None:
        self.members: dict[str, SharedMember] = {}
        self._bound = bound
        self._clock = clock
        self._wall_clock = wall_clock
        self._structure = SharedSkyline(since=BEFORE_ALL)
        self._stragglers = LateSolutions()
        self._log = PaneLog()
        self._log_room = _LOG_ROOM
        self._closed_ms = self._ended_ms = BEFORE_ALL
        """Times of progress.

        All windows that close at ``_closed_ms`` or before it have closed; so have, at the end of
        input, those that open before ``_ended_ms``.
        """
        self._shown: dict[tuple[tuple[str, ...], str | None], ShownBindings] = {}
        self._resumed: dict[str, bytes] = {}

    @property
    def slide_ms(self) -> int:
        """Shortest slide."""
        return min(
            (member.windows.slide_ms for member in self.members.values()),
            default=self._bound.windows.slide_ms,
        )

    # Queries come and go --------------------------------------------------------------------------

    @property
    def names(self) -> Sequence[str]:
        """Names of the members."""
        return list(self.members)

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Add a member, from the first window on that opens at a time or later."""
        assert isinstance(bound, BoundQuery)
        time_ms = after_ms.get(bound.stream.iri)
        since = None if time_ms is None else bound.windows.opening_from(time_ms)
        member = self._enrol(bound, since)
        self._structure.meta.join_at(bound.name, _asked(bound), member.first)

    def resume_query(self, bound: Bound) -> bool:
        """Continue a member of the snapshot."""
        assert isinstance(bound, BoundQuery)
        part = self._resumed.get(f"member {bound.name}")
        if part is not None:
            member = self._enrol(bound, None)
            self._structure.meta.join_at(
                bound.name, _asked(bound), member.resume(part), member.first
            )
        return part is not None

    def _enrol(self, bound: BoundQuery, since: int | None) -> SharedMember:
        shown = self._shown_like(bound)
        member = SharedMember(bound, since, shown, clock=self._clock, wall_clock=self._wall_clock)
        self.members[bound.name] = member
        return member

    def _shown_like(self, bound: BoundQuery) -> ShownBindings:
        """Return the bindings that queries with the same projection have shown."""
        return self._shown.setdefault(
            (bound.plan.projection, bound.plan.score.variable), ShownBindings()
        )

    def leave(self, name: str) -> None:
        """Stop answering a query."""
        if self.members.pop(name, None) is not None:
            self._structure.leave(name)

    def close(self) -> None:
        """Do nothing: there are no other resources."""

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    # Parts in -------------------------------------------------------------------------------------

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return one reducer for all members."""
        plan, meta = self._bound.plan, self._structure.meta
        # Boundaries include those of windows that closed before a query joined: their records are
        # late.
        boundaries = {PeriodicTimes(each.at, each.step) for each in meta.boundaries()}
        needs = SharedRequirements(
            max(1, meta.most), meta.narrowest, tuple(sorted(boundaries)), self._passed_ms
        )
        return [SharedBest(self._bound.matcher, plan.score, needs, plan.stream_variables)]

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Take in one partition."""
        (part,) = parts
        for member in self.members.values():
            member.note(part.facts.events, part.facts.bad or {}, part.facts.earliest_ms)
        panes, scored = (
            panes_of(part.table),
            scored_of(part.table, self._bound.plan.stream_variables),
        )
        # Both are in time order; old records may still be in time for some members.
        old = int(np.searchsorted(panes.times, self._passed_ms, side="right"))
        for at, came in (
            (slice(old), self._came(old)),
            (slice(old, None), ArrivalWatermarks.in_time(len(panes.times) - old)),
        ):
            self._log.add(panes.take(at), came)
        if old:
            for member in self.members.values():
                member.note_late(panes.take(slice(old)), self._came(old))
        old = int(np.searchsorted(scored.rows.times, self._passed_ms, side="right"))
        if old:
            self._add_stragglers(scored.take(slice(old)))
        self._structure.add(scored.rows.take(slice(old, None)))

    def _add_stragglers(self, scored: Scored) -> None:
        """Keep the old solutions that are in time for any member."""
        times, came = scored.rows.times, self._came(len(scored))
        in_time = np.zeros(len(scored), dtype=np.bool_)
        for member in self.members.values():
            in_time |= ~member.answered.are_late(times, came) & member.answered.are_within(times)
        at = in_time.nonzero()[0]
        self._stragglers.add(scored.take(at), came.take(at))

    @property
    def _passed_ms(self) -> int:
        """Time up to which the structure takes no records: it has been answered or left out."""
        return max(self._structure.meta.now, self._closed_ms)

    def _came(self, count: int) -> ArrivalWatermarks:
        return ArrivalWatermarks.at(self._closed_ms, self._ended_ms, count)

    # Answers out ----------------------------------------------------------------------------------

    def advance(self, tick: Tick) -> Iterator[Answer]:
        """Yield the answers of all windows that close at the watermark or before it."""
        self._begin(tick.watermark_ms)
        closes = self._structure.meta.next_close
        if closes is not None and closes <= tick.watermark_ms:
            self._closed_ms = max(
                self._closed_ms, self._structure.meta.last_close(tick.watermark_ms)
            )
        yield from self._advance(tick.watermark_ms, tick.due_at)
        self._let_go()

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers of all windows that still hold events, as if time went on."""
        self._begin(math.inf)
        meta, until = self._structure.meta, BEFORE_ALL
        for name, member in self.members.items():
            newest = self._log.newest(member.answered)
            last = member.windows.last(BEFORE_ALL if newest is None else newest)
            meta.end_at(name, last)
            until = max(until, member.windows.bounds(last)[1])
            self._ended_ms = max(self._ended_ms, BEFORE_ALL if newest is None else newest)
        yield from self._advance(until, self._clock())
        for name in self.members:
            meta.end_at(name, None)

    def _begin(self, watermark_ms: float) -> None:
        """Find the first windows of members, once they are certain."""
        for name, member in self.members.items():
            first = member.begin(watermark_ms, self._closed_ms)
            if first is not None:
                self._structure.meta.go_to(name, first)

    def _advance(self, until: int, due_at: float) -> Iterator[Answer]:
        meta = self._structure.meta
        while (closes := meta.next_close) is not None and closes <= until:
            step = meta.last_close(until)
            # Only after a jump in time there are so many windows that some may be left out.
            if until - closes >= MAX_EMPTY_WINDOWS * meta.shortest:
                if self._skip_empty(until):
                    continue
                step = closes
            for name, top in self._structure.advance(step):
                member = self.members[name]
                yield member.answer(top, self._log, self._stragglers, due_at)

    def _skip_empty(self, until: int) -> bool:
        """Skip empty windows if there are too many; return True if there were any."""
        meta, has_skipped = self._structure.meta, False
        for name, member in self.members.items():
            due = meta.due(name)
            if due is not None and due.closes <= until:
                run = member.empty_run(due.window, member.windows.first(until + 1), self._log)
                if run:
                    member.skip(due.window, run)
                    meta.go_to(name, due.window + run)
                    has_skipped = True
        return has_skipped

    def _let_go(self) -> None:
        """Drop data of no open window, once it may be half of all data."""
        if len(self._log) + len(self._stragglers) < self._log_room:
            return
        until = min((member.needs_after() for member in self.members.values()), default=BEFORE_ALL)
        self._log.let_go(until)
        self._stragglers.let_go(until)
        self._log_room = _LOG_ROOM + 2 * (len(self._log) + len(self._stragglers))

    # State ----------------------------------------------------------------------------------------

    def windows(self, stream: str) -> Sequence[tuple[Windows, int | None]]:
        """Return the members' windows, each with the last that has closed."""
        return [(member.windows, member.closed) for member in self.members.values()]

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the close of the next window of any member."""
        return next_close(self.windows(stream), time_ms)

    def sizes(self, name: str) -> Sizes:
        """Return the number of candidates of all members together."""
        return Sizes(len(self._structure) + len(self._stragglers))

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state. O(all that is held)."""
        meta = self._structure.meta
        return pack_parts(
            {
                "numbers": json.dumps([self._closed_ms, self._ended_ms]).encode(),
                "structure": self._structure.snapshot(),
                "stragglers": self._stragglers.snapshot(),
                "log": self._log.snapshot(),
                **{
                    f"member {name}": member.snapshot(meta.window(name))
                    for name, member in self.members.items()
                },
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot on a new group with the same arguments, before any query joins."""
        parts = unpack_parts(snapshot)
        self._closed_ms, self._ended_ms = json.loads(parts["numbers"])
        self._structure.resume(parts["structure"])
        self._stragglers.resume(parts["stragglers"])
        self._log.resume(parts["log"])
        self._resumed = parts


def _asked(bound: BoundQuery) -> TopKRequest:
    return TopKRequest(bound.windows, bound.plan.k + bound.plan.offset)
