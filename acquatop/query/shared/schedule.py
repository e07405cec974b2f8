"""Schedule of members that each have windows of their own over one stream."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.ingest.reduce.shared_best import Panes
from acquatop.ingest.scoring import BoolArray
from acquatop.query.counters import WindowCounters
from acquatop.query.lateness import AnsweredWindows, ArrivalWatermarks
from acquatop.query.schedule.contract import Schedule
from acquatop.query.schedule.cursor import Cursor, is_jump, may_jump, range_end
from acquatop.query.shared.pane_log import PaneLog
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.shared.meta_query import MetaQuery
from acquatop.topk.shared.periodic_times import BEFORE_ALL
from acquatop.windows import Windows


class MemberWindows:
    """Windows of one member, from window ``since`` on, if that is given."""

    def __init__(self, windows: Windows, since: int | None = None) -> None:
        self.cursor = Cursor(windows)
        if since is not None:
            self.cursor.start_from(since)
        self.counters = WindowCounters()
        self.first = self.cursor.next
        """First window that is answered; None while it is not known."""
        self._begun_ms = BEFORE_ALL
        self._earliest_ms: int | None = None
        """Time of the earliest record since the query joined, until its first window has closed."""
        self._uncertain_until: int | None = None
        """Last window that lacks a record that was late for an earlier one."""

    @property
    def answered(self) -> AnsweredWindows:
        """Windows that are answered."""
        return AnsweredWindows(self.cursor.windows, self.first, self._begun_ms)

    def begin(self, watermark_ms: float, closed_ms: int) -> bool:
        """Find the first window if it is certain now; return True if so.

        Windows of other members have closed up to ``closed_ms`` by then.
        """
        has_begun = self.cursor.begin(self._earliest_ms, watermark_ms)
        if has_begun:
            self.first, self._begun_ms = self.cursor.next, closed_ms
        return has_begun

    def note(self, events: int, bad: Mapping[str, int], earliest_ms: int | None) -> None:
        """Note the number of records, the faults in them, and the time of the earliest good one."""
        self.counters.note(events, bad)
        if self.cursor.closed is None and earliest_ms is not None:
            known = earliest_ms if self._earliest_ms is None else self._earliest_ms
            self._earliest_ms = min(earliest_ms, known)

    def note_late(self, panes: Panes, came: ArrivalWatermarks) -> BoolArray:
        """Note the panes that came after a window of theirs had closed; return a mask of them."""
        windows = self.cursor.windows
        late = self.answered.are_late(panes.times, came)
        lacking = late & (panes.solutions > 0) & self.answered.are_within(panes.times)
        if lacking.any():
            self.counters.late += int(panes.solutions[lacking].sum())
            last = int(windows.spans(panes.times[lacking])[1].max())
            known = last if self._uncertain_until is None else self._uncertain_until
            self._uncertain_until = max(last, known)
        return late

    def is_uncertain(self, window: int) -> bool:
        """Return True if a window lacks a late record."""
        return self._uncertain_until is not None and window <= self._uncertain_until

    def empty_run(self, watermark_ms: float, log: PaneLog) -> int:
        """Return the number of empty windows, from the next one on, up to a watermark."""
        answered, closed = self.answered, self.cursor.closed
        if closed is None:
            record_ms = self._earliest_ms
        elif log.is_empty(answered, *self.cursor.windows.bounds(closed)):
            record_ms = log.first_after(answered, self.cursor.windows.bounds(closed)[1])
        else:
            return 0
        return self.cursor.run_before(int(range_end(watermark_ms, record_ms)))

    def last_window(self, log: PaneLog) -> int:
        """Return the last window that opens before the newest record."""
        newest_ms = log.newest(self.answered)
        return self.cursor.windows.last(BEFORE_ALL if newest_ms is None else newest_ms)

    def needs_after(self) -> int:
        """Return the time after which records are still of use.

        The window that closed last is needed to find empty windows.
        """
        window = self.first if self.cursor.closed is None else self.cursor.closed
        return BEFORE_ALL if window is None else self.cursor.windows.bounds(window)[0]

    def numbers(self) -> bytes:
        """Return the state, except for the counters."""
        numbers = [
            self.first,
            self.cursor.closed,
            self._begun_ms,
            self._earliest_ms,
            self._uncertain_until,
            self.cursor.next,
        ]
        return json.dumps(numbers).encode()

    def resume(self, numbers: bytes, counters: bytes) -> None:
        """Restore the state and the counters."""
        (
            self.first,
            self.cursor.closed,
            self._begun_ms,
            self._earliest_ms,
            self._uncertain_until,
            self.cursor.next,
        ) = json.loads(numbers)
        self.counters.resume(counters)


class PerMember(Schedule[int]):
    """Schedule of all members: it yields times up to which the shared structure may advance.

    ``plan`` has the next window of each member in the order in which they close. ``log`` has the
    panes that hold records.
    """

    def __init__(self, plan: MetaQuery, log: PaneLog) -> None:
        self.members: dict[str, MemberWindows] = {}
        self._plan = plan
        self._log = log
        self._closed_ms = self._ended_ms = BEFORE_ALL
        """Times of progress.

        All windows that close at ``_closed_ms`` or before it have closed; so have, at the end of
        input, those that open before ``_ended_ms``.
        """

    # Members --------------------------------------------------------------------------------------

    def join(self, name: str, asked: TopKRequest, since: int | None) -> MemberWindows:
        """Add a member, from a window on, or from the first that holds a record."""
        member = self.members[name] = MemberWindows(asked.windows, since)
        self._plan.join_at(name, asked, member.first)
        return member

    def resume_member(
        self, name: str, asked: TopKRequest, numbers: bytes, counters: bytes
    ) -> MemberWindows:
        """Continue a member of a snapshot."""
        member = self.members[name] = MemberWindows(asked.windows)
        member.resume(numbers, counters)
        self._plan.join_at(name, asked, member.cursor.next, member.first)
        return member

    def leave(self, name: str) -> None:
        """Drop a member."""
        del self.members[name]

    # Arrivals -------------------------------------------------------------------------------------

    @property
    def passed_ms(self) -> int:
        """Time up to which the structure takes no records: it has been answered or left out."""
        return max(self._plan.now, self._closed_ms)

    def came(self, count: int) -> ArrivalWatermarks:
        """Return the progress of time for records that come now."""
        return ArrivalWatermarks.at(self._closed_ms, self._ended_ms, count)

    # Windows that are due -------------------------------------------------------------------------

    @property
    def next_close_ms(self) -> int | None:
        """Close of the next window of any member; None while none has begun."""
        return self._plan.next_close

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return the members' windows, and how far each are answered."""
        return [member.cursor.answered for member in self.members.values()]

    def begin(self, watermark_ms: float) -> None:
        """Find the first windows of members, once they are certain."""
        for name, member in self.members.items():
            if member.begin(watermark_ms, self._closed_ms):
                assert member.first is not None
                self._plan.go_to(name, member.first)

    def reach(self, watermark_ms: int) -> None:
        """Begin, and note that all windows up to a watermark close."""
        self.begin(watermark_ms)
        closes_ms = self.next_close_ms
        if closes_ms is not None and closes_ms <= watermark_ms:
            self._closed_ms = max(self._closed_ms, self._plan.last_close(watermark_ms))

    def end(self, stream: str) -> float:
        """Let each member's windows end with the last that holds a record; return its close.

        Call :meth:`lift_ends` after the answers.
        """
        self.begin(math.inf)
        until_ms = BEFORE_ALL
        for name, member in self.members.items():
            last = member.last_window(self._log)
            newest_ms = self._log.newest(member.answered)
            self._plan.end_at(name, last)
            until_ms = max(until_ms, member.cursor.windows.bounds(last)[1])
            self._ended_ms = max(self._ended_ms, BEFORE_ALL if newest_ms is None else newest_ms)
        return until_ms

    def lift_ends(self) -> None:
        """Let windows go on after the end of the stream."""
        for name in self.members:
            self._plan.end_at(name, None)

    def _take(self, closes_ms: int, watermark_ms: float) -> int | None:
        # Only after a jump in time there are so many windows that some may be skipped.
        if not may_jump(watermark_ms - closes_ms, self._plan.shortest):
            return self._plan.last_close(int(watermark_ms))
        return None if self._skip_empty(int(watermark_ms)) else closes_ms

    def _skip_empty(self, watermark_ms: int) -> bool:
        """Skip long runs of empty windows; return True if there were any."""
        has_skipped = False
        for name, member in self.members.items():
            due = self._plan.due(name)
            if due is not None and due.closes <= watermark_ms:
                run = member.empty_run(watermark_ms, self._log)
                if is_jump(run):
                    self._plan.go_to(name, member.cursor.skip(run, member.counters) + 1)
                    has_skipped = True
        return has_skipped

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the progress of time; members have a state of their own."""
        return json.dumps([self._closed_ms, self._ended_ms]).encode()

    def resume(self, numbers: bytes) -> None:
        """Restore the progress of time."""
        self._closed_ms, self._ended_ms = json.loads(numbers)
