"""Member of a shared evaluation: its answers from the shared structure and the late solutions."""

from __future__ import annotations

import math

from acquatop.answer.answer import Answer
from acquatop.answer.assembly import ClosedWindow
from acquatop.plan.bound import BoundQuery
from acquatop.query.exactness import REASON
from acquatop.query.member import Member, ShownBindings
from acquatop.query.shared.late_solutions import LateSolutions
from acquatop.query.shared.pane_log import PaneLog
from acquatop.query.shared.ranking import SharedRanking
from acquatop.query.shared.schedule import MemberWindows
from acquatop.topk.contract import Certainty, Top
from acquatop.topk.dropped_bounds import LOST
from acquatop.topk.snapshot import pack_parts
from replica.clocks import Clock


class SharedMember:
    """Query that answers its own windows; ``shown`` are the bindings that others have shown."""

    def __init__(
        self,
        bound: BoundQuery,
        windows: MemberWindows,
        shown: ShownBindings,
        *,
        clock: Clock,
        wall_clock: Clock,
    ) -> None:
        self.windows = windows
        self.operator = SharedRanking(bound.plan)
        self.member = Member(
            bound,
            self.operator,
            clock=clock,
            wall_clock=wall_clock,
            since=windows.first,
            shown=shown,
        )

    def answer(
        self, top: Top, log: PaneLog, late_solutions: LateSolutions, due_at: float
    ) -> Answer:
        """Return the answer of a window that closes."""
        windows = self.windows
        opens_ms, closes_ms = windows.cursor.windows.bounds(top.window)
        windows.cursor.close_through(top.window)
        top = late_solutions.among(top, windows.answered, self.operator.k)
        if windows.is_uncertain(top.window):
            top = Top(top.window, top.rows, top.merits, Certainty.APPROXIMATE, LOST, math.inf)
        elif not log.is_exact(windows.answered, opens_ms, closes_ms):
            top = Top(top.window, top.rows, top.merits, Certainty.APPROXIMATE, REASON, math.inf)
        unscored = log.unscored(windows.answered, opens_ms, closes_ms)
        self.operator.show(top, unscored)
        closed = ClosedWindow(top.window, opens_ms, closes_ms, due_at)
        return self.member.answer(closed, windows.counters.take(unscored))

    def snapshot(self) -> bytes:
        """Return the query's own state, with the next of its windows."""
        return pack_parts(
            {
                "numbers": self.windows.numbers(),
                "tally": self.windows.counters.snapshot(),
                "member": self.member.snapshot(),
            }
        )
