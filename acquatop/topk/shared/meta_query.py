"""Meta query analyser (MTopS, CIKM 2011, section 4): one plan for any windows and any k.

One query stands for all. It has the widest window, and a slide from one boundary of any query to
the next. Each of its views holds the largest k of the queries that look at it. Windows that open at
the same moment share one view, however many queries look at it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from acquatop.topk.contract import IntArray
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.shared.periodic_times import (
    BEFORE_ALL,
    PeriodicTimes,
    are_near,
    between,
    first_from,
    last_before,
)

_AHEAD = 4
"""Length of the stretch whose openings are computed at once, in widest slides."""


class DueWindow(NamedTuple):
    """A window to be answered, ordered by close, then by the order in which queries joined."""

    closes: int
    order: int
    opens: int
    window: int
    name: str
    k: int


class _Member:
    """A query and its next window to answer; None until that window is known."""

    def __init__(self, order: int, name: str, asked: TopKRequest, window: int | None) -> None:
        self.order, self.name, self.asked, self.window = order, name, asked, window
        self.last: int | None = None
        self.first_opens = BEFORE_ALL if window is None else self.opens

    @property
    def opens(self) -> int:
        """Opening of the next window; before all moments if the window is not known."""
        return BEFORE_ALL if self.window is None else self.asked.windows.bounds(self.window)[0]

    def due(self) -> DueWindow | None:
        """Return the next window; None if it is not to be answered."""
        if self.window is None or (self.last is not None and self.window > self.last):
            return None
        opens, closes = self.asked.windows.bounds(self.window)
        return DueWindow(closes, self.order, opens, self.window, self.name, self.asked.k)

    def last_close(self, until: int) -> int:
        """Return the latest close, up to a moment, of the windows still to be answered."""
        windows = self.asked.windows
        last = windows.first(until + 1) - 1
        last = last if self.last is None else min(last, self.last)
        return BEFORE_ALL if self.window is None or last < self.window else windows.bounds(last)[1]

    def opening(self) -> PeriodicTimes:
        """Return the openings of its windows."""
        windows = self.asked.windows
        return PeriodicTimes(windows.bounds(0)[0], windows.slide_ms, self.first_opens)

    def closing(self) -> PeriodicTimes:
        """Return the closes of its windows."""
        windows = self.asked.windows
        return PeriodicTimes(
            windows.bounds(0)[1], windows.slide_ms, self.first_opens + windows.width_ms
        )


class MetaQuery:
    """Plan for all queries: moments that matter, windows that are due, k of each moment's view.

    With Q queries a due window costs O(log Q). Computing the openings costs O(Q) per stretch of
    several slides.

    >>> from acquatop.windows import Windows
    >>> meta = MetaQuery(since=0)
    >>> for name, width, slide in (("a", 8, 4), ("b", 6, 3), ("c", 4, 2)):  # Example 4.2
    ...     _ = meta.join(name, TopKRequest(Windows(width, slide, 0), 2))
    >>> [(due.name, due.opens, due.closes) for due in meta.take(8)]
    [('c', 0, 4), ('b', 0, 6), ('c', 2, 6), ('a', 0, 8), ('c', 4, 8)]
    """

    def __init__(self, since: int) -> None:
        self.now = since
        self._newest = since
        self._has_begun = False
        self._members: dict[str, _Member] = {}
        self._joined = 0
        self._due: list[DueWindow] = []
        self.widest = 0
        """Width of the widest window."""
        self._cuts = np.empty(0, np.int64)
        self._cut_until = BEFORE_ALL

    # Queries --------------------------------------------------------------------------------------

    def join(self, name: str, asked: TopKRequest) -> int:
        """Add a query; return the first of its windows that is answered."""
        windows = asked.windows
        # The arrivals so far are cut already, so a new query begins after them.
        first = windows.last(self._newest) + 1 if self._has_begun else windows.first(self.now + 1)
        first = first if windows.t0_ms is None else max(0, first)
        self.join_at(name, asked, first)
        return first

    def join_at(
        self, name: str, asked: TopKRequest, first: int | None, since: int | None = None
    ) -> None:
        """Add a query that is answered from a window on, or from one that :meth:`go_to` will tell.

        The caller must provide what it needs of earlier arrivals. ``since`` is the query's original
        first window if it has been answered before.
        """
        if name in self._members:
            raise ValueError(
                f"there is a query {name} already: leave it first, or take another name"
            )
        member = self._members[name] = _Member(
            self._joined, name, asked, first if since is None else since
        )
        member.window = first
        self._joined += 1
        self._expect(member)
        self.widest = max(self.widest, asked.windows.width_ms)
        self._cut_until = BEFORE_ALL

    def go_to(self, name: str, window: int) -> None:
        """Set a query's next window; those before it are not answered."""
        member = self._members[name]
        if member.window is None:
            member.first_opens = member.asked.windows.bounds(window)[0]
            self._cut_until = BEFORE_ALL
        member.window = window
        self._expect(member)

    def end_at(self, name: str, last: int | None) -> None:
        """Set a query's last window to answer; None lifts the limit."""
        member = self._members[name]
        member.last = last
        self._expect(member)

    def window(self, name: str) -> int | None:
        """Return a query's next window; None until it is known."""
        return self._members[name].window

    def due(self, name: str) -> DueWindow | None:
        """Return a query's next window as due; None if it is not to be answered."""
        return self._members[name].due()

    def last_close(self, until: int) -> int:
        """Return the latest close, up to a moment, of the windows still to be answered.

        At least one query is needed.
        """
        return max(member.last_close(until) for member in self._members.values())

    def _expect(self, member: _Member) -> None:
        due = member.due()
        if due is not None:
            heapq.heappush(self._due, due)

    def leave(self, name: str) -> None:
        """Remove a query."""
        del self._members[name]
        self._cut_until = BEFORE_ALL
        self.widest = max(
            (member.asked.windows.width_ms for member in self._members.values()), default=0
        )

    def __contains__(self, due: DueWindow) -> bool:
        member = self._members.get(due.name)
        return member is not None and member.order == due.order

    def _is_next(self, due: DueWindow) -> bool:
        return due in self and self._members[due.name].due() == due

    def __len__(self) -> int:
        return len(self._members)

    # Time -----------------------------------------------------------------------------------------

    def note(self, newest: int) -> None:
        """Note the time of the newest arrival."""
        self._newest, self._has_begun = max(self._newest, newest), True

    def go_on(self, until: int) -> None:
        """Advance time."""
        if until > self.now:
            self.now = until
            self.note(until)

    @property
    def next_close(self) -> int | None:
        """Next close of a window to be answered; None if there is none."""
        while self._due and not self._is_next(self._due[0]):
            heapq.heappop(self._due)
        return self._due[0].closes if self._due else None

    def take(self, until: int) -> list[DueWindow]:
        """Remove and return all windows that close up to a moment, in order."""
        taken = []
        while (closes := self.next_close) is not None and closes <= until:
            due = heapq.heappop(self._due)
            member = self._members[due.name]
            member.window = due.window + 1
            self._expect(member)
            taken.append(due)
        return taken

    # Demand ---------------------------------------------------------------------------------------

    @property
    def most(self) -> int:
        """Largest k; 0 if there are no queries."""
        return max((member.asked.k for member in self._members.values()), default=0)

    def demand(self) -> tuple[IntArray, IntArray]:
        """Return the openings of the queries' next windows, in order, and the k needed after each.

        The k of a moment is the largest of any query whose next window has opened by then. Arrivals
        before the first moment are no longer needed.
        """
        members = [member for member in self._members.values() if member.window is not None]
        opens = np.array([member.opens for member in members], dtype=np.int64)
        ks = np.array([member.asked.k for member in members], dtype=np.int64)
        order = np.argsort(opens)
        return opens[order], np.maximum.accumulate(ks[order]) if len(ks) else ks

    def k_of(self, opens: int) -> int:
        """Return the k of the view that opens at a moment; 0 if no window to come opens then."""
        return max(
            (member.asked.k for member in self._members.values() if _looks_at(member, opens)),
            default=0,
        )

    @property
    def narrowest(self) -> int:
        """Width of the narrowest window; 0 if there are no queries."""
        return min((member.asked.windows.width_ms for member in self._members.values()), default=0)

    @property
    def shortest(self) -> int:
        """Shortest slide; 0 if there are no queries."""
        return min((member.asked.windows.slide_ms for member in self._members.values()), default=0)

    def openings(self, after: int, until: int) -> IntArray:
        """Return the openings of any windows after ``after`` and up to ``until``, in order."""
        return between(self._openings(), after, until)

    def ends(self, times: IntArray) -> IntArray:
        """Return the ends of the times' panes: the first boundary at each time or after it.

        Boundaries are the openings and closes of all windows. Times are in order; those with the
        same end are in the same windows.
        """
        return first_from(self.boundaries(), times)

    def boundaries(self) -> list[PeriodicTimes]:
        """Return the openings and closes of all queries' windows."""
        return [*self._openings(), *(member.closing() for member in self._members.values())]

    def _openings(self) -> list[PeriodicTimes]:
        return [member.opening() for member in self._members.values()]

    def labels(self, times: IntArray) -> IntArray:
        """Return the last opening of any window before each of some times, which are in order.

        Arrivals with the same label leave all windows together. A time before all openings has the
        label ``BEFORE_ALL``.
        """
        if not len(times):
            return times
        earliest, latest = int(times[0]), int(times[-1])
        if latest > self._cut_until:
            if not are_near(self._openings(), times):
                return last_before(self._openings(), times)
            self._cut(earliest, latest)
        starts = np.searchsorted(times, self._cuts, side="right")
        counts = np.diff(starts, prepend=0, append=len(times))
        return np.repeat(np.concatenate(([BEFORE_ALL], self._cuts)), counts)

    def _cut(self, earliest: int, latest: int) -> None:
        slides = [member.asked.windows.slide_ms for member in self._members.values()]
        # The last opening before the earliest time is at most one slide away.
        widest = max(slides, default=1)
        self._cut_until = latest + _AHEAD * widest
        self._cuts = self.openings(earliest - widest - 1, self._cut_until)

    # Snapshots ------------------------------------------------------------------------------------

    def state(self) -> dict[str, Any]:
        """Return the progress of time as JSON. Queries are not included: they join again."""
        return {"now": self.now, "newest": self._newest, "has_begun": self._has_begun}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Restore a state, before any query joins."""
        self.now, self._newest, self._has_begun = state["now"], state["newest"], state["has_begun"]

    def _check(self) -> None:
        """Assert every invariant."""
        live = {due for due in self._due if self._is_next(due)}
        assert live == {
            due for member in self._members.values() if (due := member.due()) is not None
        }
        assert all(due.closes > self.now for due in live)
        assert (np.diff(self._cuts) > 0).all()


def _looks_at(member: _Member, opens: int) -> bool:
    """Return true if a window that is still to be answered opens at a moment."""
    windows = member.asked.windows
    window = windows.last(opens) + 1
    return (member.window is None or window >= member.window) and windows.bounds(window)[0] == opens
