"""Evaluation of a top-k query over several windows that are joined by key."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from acquatop.answer.answer import Answer, Shown
from acquatop.answer.assembly import ClosedWindow
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.plan.bound import Bound, BoundQuery
from acquatop.plugins import RANKERS
from acquatop.query.contents import content_of
from acquatop.query.contract import Sizes, Tick
from acquatop.query.joined_remote import NoRemote, remote_of
from acquatop.query.joined_windows.made import ColumnMaker, MadeColumns
from acquatop.query.joined_windows.ranking import JoinedWindowsTopKN
from acquatop.query.joined_windows.side import WindowSide
from acquatop.query.member import Member
from acquatop.query.schedule.several_streams import SeveralStreams
from acquatop.query.schedule.windows import Due
from acquatop.refresh.lanes import Lanes
from acquatop.refresh.open_replicas import Joined
from acquatop.refresh.replica_refresh import RankingNeeds
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.clocks import Clock
from replica.maintainer import Refreshed
from replica.rankers import RankerRegistry


class JoinedWindowsEvaluation:
    """Top-k query over windows that are joined by the terms that they share.

    An answer is due whenever a window closes. Each window then shows its content at its own last
    close, nothing before its first. What a window holds changes by what comes and goes; the join
    and the scores are made anew at every close, on columns. Time is that of the slowest stream; a
    stream that has ended does not hold up others. Not thread-safe.
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
        instant: Callable[[int], int] = int,
        lanes: Lanes | None = None,
    ) -> None:
        self.name = bound.name
        self.names: Sequence[str] = [bound.name]
        self.slide_ms = min(each.windows.slide_ms for each in bound.parts)
        self._bound = bound
        self._clock = clock
        self._sides = [WindowSide(each, content_of(each, NoRemote())) for each in bound.parts]
        self._lanes = lanes or Lanes()
        self._remote = remote_of(
            bound, maintainer, rankers, random, clock=clock, expects=False, lanes=self._lanes
        )
        self._schedule = SeveralStreams(
            [side.occupancy for side in self._sides], [each.stream.iri for each in bound.parts]
        )
        names = [each.name.value for each in bound.plan.windowed.windows]
        self._declared = [names.index(side.bound.name) for side in self._sides]
        """Place of each side's window in the query."""
        self._in_order = sorted(self._sides, key=lambda side: names.index(side.bound.name))
        self._instant = instant
        self._maker = ColumnMaker(bound.plan, self._sides)
        ranking = self._ranking(0, self._maker.nothing())
        self._member = Member(
            bound,
            ranking,
            clock=clock,
            wall_clock=wall_clock,
            facts=self._remote.facts(ranking, bound.plan.offset),
            instant=instant,
        )
        self._is_resumed = False

    # Queries come and go --------------------------------------------------------------------------

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Start the query; show only windows that open after the given times of streams."""
        self._schedule.start_after(after_ms)

    def resume_query(self, bound: Bound) -> bool:
        """Continue the query of the snapshot."""
        return self._is_resumed

    def leave(self, name: str) -> None:
        """Do nothing: the evaluation is closed with its only query."""

    def close(self) -> None:
        """Close the replica's feed, and release files."""
        self._remote.close()
        self._lanes.close()
        for side in self._sides:
            side.release()

    # Records in -----------------------------------------------------------------------------------

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return the reducers of the sides on a stream, in their order."""
        return [each for side in self._on(stream) for each in side.reducers()]

    def reducers_ahead(self, stream: str, watermark_ms: int) -> Sequence[Reducer] | None:
        """Return the same for records behind a batch; None if one depends on it."""
        found: list[Reducer] = []
        for side in self._on(stream):
            closes_ms = side.cursor.next_close_ms
            may_close = closes_ms is None or closes_ms <= watermark_ms
            ahead = side.reducers_ahead(may_close=may_close)
            if ahead is None:
                return None
            found += ahead
        return found

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Take in one partition, a part for each side on the stream."""
        facts = parts[0].facts
        self._schedule.counters.note(facts.events, facts.bad or {})
        sides = zip(self._on(stream), parts, strict=True)
        # A record that is late for one side is late for all that have closed since.
        late = max(side.add(part) for side, part in sides)
        self._schedule.counters.late += late
        if late:
            self._maker.doubt()

    def _on(self, stream: str) -> list[WindowSide]:
        return [self._sides[at] for at in self._schedule.positions(stream)]

    # Answers out ----------------------------------------------------------------------------------

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the windows on a stream, and how far each are answered."""
        return self._schedule.windows(stream)

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the close of the next window on a stream."""
        return self._schedule.due_after(stream, time_ms)

    def advance(self, tick: Tick) -> Iterator[Answer]:
        """Yield the answers that are due, oldest first; time is that of the slowest stream."""
        time_ms = self._schedule.reach(tick.stream, tick.watermark_ms)
        yield from self._answers(time_ms, tick.due_at, tick.longest_wait)

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers that are due when a stream ends."""
        yield from self._answers(self._schedule.end(stream), self._clock(), math.inf)

    def _answers(self, watermark_ms: float, due_at: float, longest_wait: float) -> Iterator[Answer]:
        self._schedule.begin(watermark_ms)
        for due in self._schedule.due(watermark_ms):
            for at, window in due.closed.items():
                self._sides[at].close(window)
            self._pass_by(due)
            if not due.is_skipped:
                yield self._answer(due, due_at, longest_wait)

    def _pass_by(self, due: Due) -> None:
        """Let no side that has not begun yet go back behind an answer."""
        closes = (
            self._sides[at].cursor.windows.bounds(window)[1] for at, window in due.closed.items()
        )
        until_ms = max(closes, default=due.closes_ms)
        for side in self._sides:
            side.pass_by(until_ms)

    def _answer(self, due: Due, due_at: float, longest_wait: float) -> Answer:
        first = min(due.closed, key=self._declared.__getitem__)
        window = due.closed[first]
        opens_ms, closes_ms = self._sides[first].cursor.windows.bounds(window)
        made = self._maker.make(due.closes_ms, self._instant(due.closes_ms))
        ranking = self._ranking(window, made)
        self._member.rank_by(ranking, self._remote.facts(ranking, self._bound.plan.offset))
        refreshed = self._refresh(ranking, window, due.closes_ms, longest_wait)
        ranking.apply_changes(refreshed.changed, refreshed.first)
        self._remote.renew_lookups()
        counts = self._schedule.counters.take(0, refreshed.ambiguous, refreshed.rejected)
        counts = counts.with_unscored(ranking.unscored(window))
        closed = ClosedWindow(window, opens_ms, closes_ms, due_at)
        return self._member.answer(closed, counts, refreshed, tuple(self._shown()))

    def _ranking(self, window: int, made: MadeColumns) -> JoinedWindowsTopKN:
        plan, store = self._bound.plan, self._remote.store
        return JoinedWindowsTopKN(plan, store, self._sides, window, made)

    def _refresh(
        self, ranking: JoinedWindowsTopKN, window: int, closes_ms: int, longest_wait: float
    ) -> Refreshed:
        """Refresh the keys that the joined solutions want."""
        refresh = self._remote.refresh
        inquiry = refresh.begin(window, closes_ms)
        needs = (
            [
                RankingNeeds(
                    ranking.wanted(window, inquiry),
                    ranking.k,
                    ranking.scoring,
                    self.name,
                    self._bound.weight,
                )
            ]
            if inquiry.limit
            else []
        )
        if inquiry.touches:
            refresh.touch(ranking.needed())
        return refresh.fetch(window, needs, longest_wait)

    def _shown(self) -> Iterator[Shown]:
        """Yield the windows that are shown, each once, if they are several."""
        sides = {side.bound.name: side for side in reversed(self._in_order)}
        for name, side in reversed(sides.items()) if len(sides) > 1 else ():
            window = side.cursor.closed
            if window is not None:
                yield Shown(name, window, *side.cursor.windows.bounds(window))

    def sizes(self, name: str) -> Sizes:
        """Return the number of solutions that the windows show, and of keys in the replica."""
        return Sizes(sum(len(side.rows) for side in self._sides), self._remote.keys)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state. O(all that is held)."""
        cursors = [[side.cursor.next, side.cursor.closed] for side in self._sides]
        settings = {**self._schedule.settings(), "cursors": cursors}
        return pack_parts(
            {
                "settings": json.dumps(settings).encode(),
                "tally": self._schedule.counters.snapshot(),
                **self._remote.refresh.snapshot(),
                **{f"side {at}": side.snapshot() for at, side in enumerate(self._sides)},
                "member": self._member.output_snapshot(),
                **self._maker.snapshot(),
            }
        )

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot of the same query."""
        parts = unpack_parts(snapshot)
        settings = json.loads(parts["settings"])
        self._schedule.counters.resume(parts["tally"])
        self._schedule.resume(settings)
        self._remote.refresh.resume(parts)
        for at, (side, numbers) in enumerate(zip(self._sides, settings["cursors"], strict=True)):
            side.resume(parts[f"side {at}"])
            side.cursor.next, side.cursor.closed = numbers
        self._member.resume_output(parts["member"])
        self._maker.resume(parts)
        self._is_resumed = True

    def snapshot_committed(self) -> None:
        """Note that the last snapshot is durable."""
        for side in self._sides:
            side.snapshot_committed()
