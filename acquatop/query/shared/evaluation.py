"""Evaluation of queries that rank one stream by one score, each with windows and k of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import numpy as np

from acquatop.answer.answer import Answer
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.ingest.reduce.shared_best import SharedBest, SharedRequirements, panes_of, scored_of
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.plan.grouping import shared_by
from acquatop.plugins import STRATEGIES
from acquatop.query.contract import Sizes, Tick
from acquatop.query.exactness import Exactness
from acquatop.query.lateness import ArrivalWatermarks
from acquatop.query.member import ShownBindings
from acquatop.query.shared.late_solutions import LateSolutions
from acquatop.query.shared.member import SharedMember
from acquatop.query.shared.pane_log import PaneLog
from acquatop.query.shared.schedule import MemberWindows, PerMember
from acquatop.topk.pane_top import Scored
from acquatop.topk.shared.contract import LastingManyTopK, TopKRequest
from acquatop.topk.shared.periodic_times import BEFORE_ALL, PeriodicTimes
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.clocks import Clock

_LOG_ROOM = 4_096
"""Growth of the log of panes after which panes that no query needs are dropped."""


class SharedEvaluation:
    """Queries without a remote, over a stream whose arrivals are distinct: scores never change.

    Records are reduced once for all queries, to those that any may need, and the driver holds one
    list of candidates. A record that is late for one query may still belong to windows of others:
    it is kept beside the list. ``structure`` makes what holds the candidates, in place of what the
    catalog names. Independent of any runtime. Not thread-safe.
    """

    def __init__(
        self,
        bound: BoundQuery,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
        structure: Callable[..., LastingManyTopK] | None = None,
    ) -> None:
        self.members: dict[str, SharedMember] = {}
        self._bound = bound
        self._clock = clock
        self._wall_clock = wall_clock
        made = structure or STRATEGIES[shared_by(bound)].load()
        self._structure: LastingManyTopK = made(since=BEFORE_ALL)
        self._late_solutions = LateSolutions()
        self._log = PaneLog()
        self._capacity = Exactness(bound.plan.score, None).capacity
        self._log_room = _LOG_ROOM
        self._schedule = PerMember(self._structure.meta, self._log)
        self._shown: dict[Hashable, ShownBindings] = {}
        self._resumed: dict[str, bytes] = {}

    @property
    def slide_ms(self) -> int:
        """Shortest slide."""
        return min(
            (each.windows.slide_ms for each in self._schedule.windows(self._bound.stream.iri)),
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
        self._enrol(bound, self._schedule.join(bound.name, _request(bound), since))

    def resume_query(self, bound: Bound) -> bool:
        """Continue a member of the snapshot."""
        assert isinstance(bound, BoundQuery)
        part = self._resumed.get(f"member {bound.name}")
        if part is not None:
            parts = unpack_parts(part)
            windows = self._schedule.resume_member(
                bound.name, _request(bound), parts["numbers"], parts["tally"]
            )
            self._enrol(bound, windows).member.resume(parts["member"])
        return part is not None

    def _enrol(self, bound: BoundQuery, windows: MemberWindows) -> SharedMember:
        shown = self._shown_like(bound)
        member = SharedMember(bound, windows, shown, clock=self._clock, wall_clock=self._wall_clock)
        self.members[bound.name] = member
        return member

    def _shown_like(self, bound: BoundQuery) -> ShownBindings:
        """Return the bindings that queries with the same columns have shown."""
        plan = bound.plan
        columns = (plan.projection, plan.score.variable, plan.computed)
        return self._shown.setdefault(columns, ShownBindings())

    def leave(self, name: str) -> None:
        """Stop answering a query."""
        if self.members.pop(name, None) is not None:
            self._schedule.leave(name)
            self._structure.leave(name)

    def close(self) -> None:
        """Do nothing: there are no other resources."""

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    # Parts in -------------------------------------------------------------------------------------

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return one reducer for all members."""
        return [self._reducer(self._schedule.passed_ms)]

    def reducers_ahead(self, stream: str, watermark_ms: int) -> Sequence[Reducer]:
        """Return the same for records behind a watermark."""
        return [self._reducer(max(self._schedule.passed_ms, watermark_ms))]

    def _reducer(self, passed_ms: int) -> Reducer:
        plan, meta = self._bound.plan, self._structure.meta
        # Boundaries include those of windows that closed before a query joined: their records are
        # late.
        boundaries = {PeriodicTimes(each.at, each.step) for each in meta.boundaries()}
        needs = SharedRequirements(
            max(1, meta.most),
            meta.narrowest,
            tuple(sorted(boundaries)),
            passed_ms,
            self._capacity,
        )
        return SharedBest(self._bound.matcher, plan.score, needs, plan.stream_variables)

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Take in one partition."""
        (part,) = parts
        for member in self._schedule.members.values():
            member.note(part.facts.events, part.facts.bad or {}, part.facts.earliest_ms)
        panes, scored = (
            panes_of(part.table),
            scored_of(part.table, self._bound.plan.stream_variables),
        )
        # Both are in time order; old records may still be in time for some members.
        passed_ms = self._schedule.passed_ms
        old = int(np.searchsorted(panes.times, passed_ms, side="right"))
        came = self._schedule.came(old)
        self._log.add(panes.take(slice(old)), came)
        self._log.add(
            panes.take(slice(old, None)), ArrivalWatermarks.in_time(len(panes.times) - old)
        )
        if old:
            for member in self._schedule.members.values():
                member.note_late(panes.take(slice(old)), came)
        old = int(np.searchsorted(scored.rows.times, passed_ms, side="right"))
        if old:
            self._add_late(scored.take(slice(old)))
        self._structure.add(scored.rows.take(slice(old, None)))

    def _add_late(self, scored: Scored) -> None:
        """Keep the old solutions that are in time for any member."""
        times, came = scored.rows.times, self._schedule.came(len(scored))
        in_time = np.zeros(len(scored), dtype=np.bool_)
        for member in self._schedule.members.values():
            in_time |= ~member.answered.are_late(times, came) & member.answered.are_within(times)
        at = in_time.nonzero()[0]
        self._late_solutions.add(scored.take(at), came.take(at))

    # Answers out ----------------------------------------------------------------------------------

    def advance(self, tick: Tick) -> Iterator[Answer]:
        """Yield the answers of all windows that close at the watermark or before it."""
        self._schedule.reach(tick.watermark_ms)
        yield from self._answers(tick.watermark_ms, tick.due_at)
        self._release()

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers of all windows that still hold events, as if time went on."""
        yield from self._answers(self._schedule.end(stream), self._clock())
        self._schedule.lift_ends()

    def _answers(self, until_ms: float, due_at: float) -> Iterator[Answer]:
        for time_ms in self._schedule.due(until_ms):
            for name, top in self._structure.advance(time_ms):
                yield self.members[name].answer(top, self._log, self._late_solutions, due_at)

    def _release(self) -> None:
        """Drop data of no open window, once it may be half of all data."""
        if len(self._log) + len(self._late_solutions) < self._log_room:
            return
        members = self._schedule.members.values()
        until = min((member.needs_after() for member in members), default=BEFORE_ALL)
        self._log.release(until)
        self._late_solutions.release(until)
        self._log_room = _LOG_ROOM + 2 * (len(self._log) + len(self._late_solutions))

    # State ----------------------------------------------------------------------------------------

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the members' windows, and how far each are answered."""
        return self._schedule.windows(stream)

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the close of the next window of any member."""
        return self._schedule.due_after(stream, time_ms)

    def sizes(self, name: str) -> Sizes:
        """Return the number of candidates of all members together."""
        return Sizes(len(self._structure) + len(self._late_solutions))

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state. O(all that is held)."""
        return pack_parts(
            {
                "numbers": self._schedule.snapshot(),
                "structure": self._structure.snapshot(),
                "stragglers": self._late_solutions.snapshot(),
                "log": self._log.snapshot(),
                **{f"member {name}": member.snapshot() for name, member in self.members.items()},
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot on a new group with the same arguments, before any query joins."""
        parts = unpack_parts(snapshot)
        self._schedule.resume(parts["numbers"])
        self._structure.resume(parts["structure"])
        self._late_solutions.resume(parts["stragglers"])
        self._log.resume(parts["log"])
        self._resumed = parts


def _request(bound: BoundQuery) -> TopKRequest:
    return TopKRequest(bound.windows, bound.plan.k + bound.plan.offset)
