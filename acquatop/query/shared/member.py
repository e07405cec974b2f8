"""Member of a group with windows of its own: its answered windows and its counts."""

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
from acquatop.query.counters import WindowCounters
from acquatop.query.lateness import AnsweredWindows, ArrivalWatermarks
from acquatop.query.member import Member, ShownBindings
from acquatop.query.shared.late_solutions import LateSolutions
from acquatop.query.shared.pane_log import PaneLog
from acquatop.query.shared.ranking import SharedRanking
from acquatop.topk.contract import Certainty, Top
from acquatop.topk.dropped_bounds import LOST
from acquatop.topk.shared.periodic_times import BEFORE_ALL
from acquatop.topk.snapshot import pack_parts, unpack_parts
from replica.clocks import Clock


class SharedMember:
    """Query with its own windows, from window ``since`` on, if that is given.

    Otherwise they begin with the first that holds an event, once time has reached that event.
    ``first`` is the first window that is answered, once it is known, ``closed`` the last that has
    closed. ``shown`` are the bindings that others have shown.
    """

    def __init__(
        self,
        bound: BoundQuery,
        since: int | None,
        shown: ShownBindings,
        *,
        clock: Clock,
        wall_clock: Clock,
    ) -> None:
        self.windows = bound.windows
        self.operator = SharedRanking(bound.plan)
        self.member = Member(
            bound, self.operator, clock=clock, wall_clock=wall_clock, since=since, shown=shown
        )
        self.first = 0 if since is None and bound.windows.t0_ms is not None else since
        self.closed: int | None = None
        self._begun_ms = BEFORE_ALL
        self._earliest_ms: int | None = None
        """Time of the earliest record since the query joined, until its first window has closed."""
        self._lost_until: int | None = None
        """Last window that lacks a record that was late for an earlier one."""
        self._tally = WindowCounters()

    @property
    def answered(self) -> AnsweredWindows:
        """Windows that are answered."""
        return AnsweredWindows(self.windows, self.first, self._begun_ms)

    def begin(self, watermark_ms: float, closed_ms: int) -> int | None:
        """Return the first answered window if it becomes known now: time has reached an event.

        Windows of other queries have closed up to ``closed_ms`` by then.
        """
        if self.first is not None or self._earliest_ms is None or self._earliest_ms > watermark_ms:
            return None
        self.first, self._begun_ms = self.windows.first(self._earliest_ms), closed_ms
        return self.first

    # Arrivals -------------------------------------------------------------------------------------

    def note(self, events: int, bad: Mapping[str, int], earliest_ms: int | None) -> None:
        """Note the number of records, the faults in them, and the time of the earliest good one."""
        self._tally.note(events, bad)
        if self.closed is None and earliest_ms is not None:
            known = earliest_ms if self._earliest_ms is None else self._earliest_ms
            self._earliest_ms = min(earliest_ms, known)

    def note_late(self, panes: Panes, came: ArrivalWatermarks) -> BoolArray:
        """Note the panes that came after a window of theirs had closed; return a mask of them."""
        late = self.answered.are_late(panes.times, came)
        lacking = late & (panes.solutions > 0) & self.answered.are_within(panes.times)
        if lacking.any():
            self._tally.late += int(panes.solutions[lacking].sum())
            last = int(self.windows.spans(panes.times[lacking])[1].max())
            self._lost_until = last if self._lost_until is None else max(last, self._lost_until)
        return late

    # Windows that are due -------------------------------------------------------------------------

    def empty_run(self, window: int, until: int, log: PaneLog) -> int:
        """Return the number of windows to skip, from ``window`` to before ``until``.

        It is the length of a run of empty windows if that is long, else 0.
        """
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
        """Skip ``run`` windows, from ``window`` on."""
        self._tally.skipped += run
        self.closed = window + run - 1

    def needs_after(self) -> int:
        """Return the time after which records are still of use.

        The window that closed last is needed to find empty windows.
        """
        if self.closed is not None:
            return self.windows.bounds(self.closed)[0]
        return BEFORE_ALL if self.first is None else self.windows.bounds(self.first)[0]

    def answer(self, top: Top, log: PaneLog, stragglers: LateSolutions, due_at: float) -> Answer:
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
        """Return the query's own state, with the next of its windows."""
        numbers = [
            self.first,
            self.closed,
            self._begun_ms,
            self._earliest_ms,
            self._lost_until,
            window,
        ]
        return pack_parts(
            {
                "numbers": json.dumps(numbers).encode(),
                "tally": self._tally.snapshot(),
                "member": self.member.snapshot(),
            }
        )

    def resume(self, snapshot: bytes) -> int | None:
        """Restore a snapshot; return the next window."""
        parts = unpack_parts(snapshot)
        numbers = json.loads(parts["numbers"])
        self.first, self.closed, self._begun_ms, self._earliest_ms, self._lost_until, window = (
            numbers
        )
        self._tally.resume(parts["tally"])
        self.member.resume(parts["member"])
        return window if window is None else int(window)
