"""One query of a group whose members have windows of their own: which are answered, and what happened meanwhile."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping

from acquatop.answer.answer import Answer
from acquatop.answer.assembly import ClosedWindow
from acquatop.ingest.reduce.shared_best import Panes
from acquatop.ingest.scoring import BoolArray
from acquatop.plan.bind import BoundQuery
from acquatop.query.contract import MAX_EMPTY_WINDOWS
from acquatop.query.counters import Tally
from acquatop.query.lateness import Answered, Came
from acquatop.query.member import Member, ShownBindings
from acquatop.query.shared.late_solutions import Stragglers
from acquatop.query.shared.pane_log import PaneLog
from acquatop.query.shared.ranking import Shared
from acquatop.topk.contract import Certainty, Top
from acquatop.topk.lost import LOST
from acquatop.topk.shared.moments import BEFORE_ALL
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.clocks import Clock


class SharedMember:
    """A query at work on its own windows, from window ``since`` on, if that is given.

    Otherwise they begin with the first that holds an event, once time has come to that. ``first`` is the first that
    is answered, as soon as it is known, ``closed`` the last that has closed. ``shown`` is what others have shown.
    """

    def __init__(
        self, bound: BoundQuery, since: int | None, shown: ShownBindings, *, clock: Clock, wall_clock: Clock
    ) -> None:
        self.windows = bound.windows
        self.operator = Shared(bound.plan)
        self.member = Member(bound, self.operator, clock=clock, wall_clock=wall_clock, since=since, shown=shown)
        self.first = 0 if since is None and bound.windows.t0_ms is not None else since
        self.closed: int | None = None
        self._begun_ms = BEFORE_ALL
        self._earliest_ms: int | None = None
        """The earliest record since the query has joined, as long as none of its windows has closed."""
        self._lost_until: int | None = None
        """The last window that lacks something which came too late for one before it."""
        self._tally = Tally()

    @property
    def answered(self) -> Answered:
        """The windows that are answered."""
        return Answered(self.windows, self.first, self._begun_ms)

    def begin(self, watermark_ms: float, closed_ms: int) -> int | None:
        """Return the first window that is answered, if that is known only now, as time has come to the first event.

        Until then windows of others have closed that close until ``closed_ms``.
        """
        if self.first is not None or self._earliest_ms is None or self._earliest_ms > watermark_ms:
            return None
        self.first, self._begun_ms = self.windows.first(self._earliest_ms), closed_ms
        return self.first

    # What has come --------------------------------------------------------------------------------

    def note(self, events: int, bad: Mapping[str, int], earliest_ms: int | None) -> None:
        """Note how many records have come, the faults in them, and the earliest of the good ones."""
        self._tally.note(events, bad)
        if self.closed is None and earliest_ms is not None:
            known = earliest_ms if self._earliest_ms is None else self._earliest_ms
            self._earliest_ms = min(earliest_ms, known)

    def note_late(self, panes: Panes, came: Came) -> BoolArray:
        """Note which panes came after a window of their own had closed; return which."""
        late = self.answered.are_late(panes.times, came)
        lacking = late & (panes.solutions > 0) & self.answered.are_within(panes.times)
        if lacking.any():
            self._tally.late += int(panes.solutions[lacking].sum())
            last = int(self.windows.spans(panes.times[lacking])[1].max())
            self._lost_until = last if self._lost_until is None else max(last, self._lost_until)
        return late

    # What is due ----------------------------------------------------------------------------------

    def empty_run(self, window: int, until: int, log: PaneLog) -> int:
        """Return how many windows before one are left out, from the next on: those of a long run without events."""
        answered, closed = self.answered, self.closed
        if closed is None:
            occupied = self._earliest_ms
        elif log.is_empty(answered, *self.windows.bounds(closed)):
            occupied = log.first_after(answered, self.windows.bounds(closed)[1])
        else:
            return 0
        run = (until if occupied is None else min(until, self.windows.first(occupied))) - window
        return run if run > MAX_EMPTY_WINDOWS else 0

    def skip(self, window: int, run: int) -> None:
        """Leave windows out, from the next on."""
        self._tally.skipped += run
        self.closed = window + run - 1

    def needs_after(self) -> int:
        """Return after when what has come is of use still: that of the window that closed last tells of empty ones."""
        if self.closed is not None:
            return self.windows.bounds(self.closed)[0]
        return BEFORE_ALL if self.first is None else self.windows.bounds(self.first)[0]

    def answer(self, top: Top, log: PaneLog, stragglers: Stragglers, due_at: float) -> Answer:
        """Return the answer of a window that closes."""
        opens_ms, closes_ms = self.windows.bounds(top.window)
        self.closed = top.window
        top = stragglers.among(top, self.answered, self.operator.k)
        if self._lost_until is not None and top.window <= self._lost_until:
            top = Top(top.window, top.rows, top.merits, Certainty.APPROXIMATE, LOST, math.inf)
        unscored = log.unscored(self.answered, opens_ms, closes_ms)
        self.operator.show(top, unscored)
        closed = ClosedWindow(top.window, opens_ms, closes_ms, due_at)
        return self.member.answer(closed, self._tally.take(unscored))

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self, window: int | None) -> bytes:
        """Return what is the query's own, with the next of its windows."""
        numbers = [self.first, self.closed, self._begun_ms, self._earliest_ms, self._lost_until, window]
        return pack_parts(
            {
                "numbers": json.dumps(numbers).encode(),
                "tally": self._tally.snapshot(),
                "member": self.member.snapshot(),
            }
        )

    def resume(self, snapshot: bytes) -> int | None:
        """Go on from a snapshot; return the next window."""
        parts = unpack_parts(snapshot)
        numbers = json.loads(parts["numbers"])
        self.first, self.closed, self._begun_ms, self._earliest_ms, self._lost_until, window = numbers
        self._tally = Tally.restore(parts["tally"])
        self.member.resume(parts["member"])
        return window if window is None else int(window)
