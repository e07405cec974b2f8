"""The meta query analyser (MTopS, CIKM 2011, section 4): windows of any width and slide, and any k, as one plan.

The one query that stands for all has the widest window, a slide that goes from one boundary to the
next, whichever query that belongs to, and of each of its views as many as the most demanding query
that looks at it. What opens at the same moment is one view, however many queries look at it.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from acquatop.topk.contract import IntArray
from acquatop.topk.shared.contract import Asked
from acquatop.topk.shared.moments import BEFORE_ALL, Series, are_near, between, first_from, last_before

_AHEAD = 4
"""How many of the widest slides are cut ahead at once."""


class Due(NamedTuple):
    """A window that is to be answered: the earlier close first, then the query that joined earlier."""

    closes: int
    order: int
    opens: int
    window: int
    name: str
    k: int


class _Member:
    """A query, and the next of its windows that is to be answered, as long as none is known not after any."""

    def __init__(self, order: int, name: str, asked: Asked, window: int | None) -> None:
        self.order, self.name, self.asked, self.window = order, name, asked, window
        self.last: int | None = None
        self.first_opens = BEFORE_ALL if window is None else self.opens

    @property
    def opens(self) -> int:
        """When the next window opens, or has opened."""
        return BEFORE_ALL if self.window is None else self.asked.windows.bounds(self.window)[0]

    def due(self) -> Due | None:
        """Return the next window, unless nobody is to be told of it."""
        if self.window is None or (self.last is not None and self.window > self.last):
            return None
        opens, closes = self.asked.windows.bounds(self.window)
        return Due(closes, self.order, opens, self.window, self.name, self.asked.k)

    def last_close(self, until: int) -> int:
        """Return when the last of its windows closes that are to be answered and close until then."""
        windows = self.asked.windows
        last = windows.first(until + 1) - 1
        last = last if self.last is None else min(last, self.last)
        return BEFORE_ALL if self.window is None or last < self.window else windows.bounds(last)[1]

    def opening(self) -> Series:
        """Return when its windows open."""
        windows = self.asked.windows
        return Series(windows.bounds(0)[0], windows.slide_ms, self.first_opens)

    def closing(self) -> Series:
        """Return when its windows close."""
        windows = self.asked.windows
        return Series(windows.bounds(0)[1], windows.slide_ms, self.first_opens + windows.width_ms)


class MetaQuery:
    """Which moments matter to any of the queries, which windows are due, and how many each moment's view needs.

    With Q queries a window that is due costs O(log Q); cutting costs O(Q) for each stretch of several slides.

    >>> from acquatop.windows import Windows
    >>> meta = MetaQuery(since=0)
    >>> for name, width, slide in (("a", 8, 4), ("b", 6, 3), ("c", 4, 2)):  # Example 4.2
    ...     _ = meta.join(name, Asked(Windows(width, slide, 0), 2))
    >>> [(due.name, due.opens, due.closes) for due in meta.take(8)]
    [('c', 0, 4), ('b', 0, 6), ('c', 2, 6), ('a', 0, 8), ('c', 4, 8)]
    """

    def __init__(self, since: int) -> None:
        self.now = since
        self._newest = since
        self._has_begun = False
        self._members: dict[str, _Member] = {}
        self._joined = 0
        self._due: list[Due] = []
        self.widest = 0
        """How wide the widest window is."""
        self._cuts = np.empty(0, np.int64)
        self._cut_until = BEFORE_ALL

    # Queries come and go --------------------------------------------------------------------------

    def join(self, name: str, asked: Asked) -> int:
        """Answer one more query; return the first of its windows that is answered."""
        windows = asked.windows
        # What has come is cut already: a new query begins after it.
        first = windows.last(self._newest) + 1 if self._has_begun else windows.first(self.now + 1)
        first = first if windows.t0_ms is None else max(0, first)
        self.join_at(name, asked, first)
        return first

    def join_at(self, name: str, asked: Asked, first: int | None, since: int | None = None) -> None:
        """Answer one more query from a window on, or from one that :meth:`go_to` will tell.

        What it needs of what has come already is the caller's business. ``since`` is the window that was its first,
        if it has been answered before.
        """
        if name in self._members:
            raise ValueError(f"there is a query {name} already: leave it first, or take another name")
        member = self._members[name] = _Member(self._joined, name, asked, first if since is None else since)
        member.window = first
        self._joined += 1
        self._expect(member)
        self.widest = max(self.widest, asked.windows.width_ms)
        self._cut_until = BEFORE_ALL

    def go_to(self, name: str, window: int) -> None:
        """Let a window be a query's next: those before it are not answered."""
        member = self._members[name]
        if member.window is None:
            member.first_opens = member.asked.windows.bounds(window)[0]
            self._cut_until = BEFORE_ALL
        member.window = window
        self._expect(member)

    def end_at(self, name: str, last: int | None) -> None:
        """Let no window of a query be due after one, until it is told otherwise."""
        member = self._members[name]
        member.last = last
        self._expect(member)

    def window(self, name: str) -> int | None:
        """Return a query's next window; None as long as none is known."""
        return self._members[name].window

    def due(self, name: str) -> Due | None:
        """Return a query's next window, unless it is not to be answered."""
        return self._members[name].due()

    def last_close(self, until: int) -> int:
        """Return when the last of the windows closes that are to be answered and close until then; one must."""
        return max(member.last_close(until) for member in self._members.values())

    def _expect(self, member: _Member) -> None:
        due = member.due()
        if due is not None:
            heapq.heappush(self._due, due)

    def leave(self, name: str) -> None:
        """Answer a query no more."""
        del self._members[name]
        self._cut_until = BEFORE_ALL
        self.widest = max((member.asked.windows.width_ms for member in self._members.values()), default=0)

    def __contains__(self, due: Due) -> bool:
        member = self._members.get(due.name)
        return member is not None and member.order == due.order

    def _is_next(self, due: Due) -> bool:
        return due in self and self._members[due.name].due() == due

    def __len__(self) -> int:
        return len(self._members)

    # Time -----------------------------------------------------------------------------------------

    def note(self, newest: int) -> None:
        """Note the time of the newest arrival."""
        self._newest, self._has_begun = max(self._newest, newest), True

    def go_on(self, until: int) -> None:
        """Let time go on."""
        if until > self.now:
            self.now = until
            self.note(until)

    @property
    def next_close(self) -> int | None:
        """When the next window closes that is to be answered; None if there are no queries."""
        while self._due and not self._is_next(self._due[0]):
            heapq.heappop(self._due)
        return self._due[0].closes if self._due else None

    def take(self, until: int) -> list[Due]:
        """Return all windows that close until then, in order; they are not returned again."""
        taken = []
        while (closes := self.next_close) is not None and closes <= until:
            due = heapq.heappop(self._due)
            member = self._members[due.name]
            member.window = due.window + 1
            self._expect(member)
            taken.append(due)
        return taken

    # What matters ---------------------------------------------------------------------------------

    @property
    def most(self) -> int:
        """The largest k; 0 if there are no queries."""
        return max((member.asked.k for member in self._members.values()), default=0)

    def demand(self) -> tuple[IntArray, IntArray]:
        """Return moments, in order, and how many are asked for of what came after each: the most of any query.

        Of what came before the first of them none is asked for any more.
        """
        members = [member for member in self._members.values() if member.window is not None]
        opens = np.array([member.opens for member in members], dtype=np.int64)
        ks = np.array([member.asked.k for member in members], dtype=np.int64)
        order = np.argsort(opens)
        return opens[order], np.maximum.accumulate(ks[order]) if len(ks) else ks

    def k_of(self, opens: int) -> int:
        """Return how many are asked for of the view that opens at a moment; 0 if no window to come opens then."""
        return max((member.asked.k for member in self._members.values() if _looks_at(member, opens)), default=0)

    @property
    def narrowest(self) -> int:
        """How wide the narrowest window is; 0 if there are no queries."""
        return min((member.asked.windows.width_ms for member in self._members.values()), default=0)

    @property
    def shortest(self) -> int:
        """The shortest slide; 0 if there are no queries."""
        return min((member.asked.windows.slide_ms for member in self._members.values()), default=0)

    def openings(self, after: int, until: int) -> IntArray:
        """Return the moments in order, after one and not after another, at which a window opens."""
        return between(self._openings(), after, until)

    def ends(self, times: IntArray) -> IntArray:
        """Return the boundary, at which a window opens or closes, at which the pane of each of some times ends.

        Times are in order; what has the same end is in the same windows.
        """
        return first_from(self.boundaries(), times)

    def boundaries(self) -> list[Series]:
        """Return when windows open and close."""
        return [*self._openings(), *(member.closing() for member in self._members.values())]

    def _openings(self) -> list[Series]:
        return [member.opening() for member in self._members.values()]

    def labels(self, times: IntArray) -> IntArray:
        """Return when the last window opened before each of some times, which are in order.

        What has the same label leaves all windows together. The label of what is in no window is older than all.
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
        """Return how far time has gone, as JSON: queries join again by themselves."""
        return {"now": self.now, "newest": self._newest, "has_begun": self._has_begun}

    def resume(self, state: Mapping[str, Any]) -> None:
        """Go on from a state, before any query joins."""
        self.now, self._newest, self._has_begun = state["now"], state["newest"], state["has_begun"]

    def _check(self) -> None:
        """Assert every invariant."""
        live = {due for due in self._due if self._is_next(due)}
        assert live == {due for member in self._members.values() if (due := member.due()) is not None}
        assert all(due.closes > self.now for due in live)
        assert (np.diff(self._cuts) > 0).all()


def _looks_at(member: _Member, opens: int) -> bool:
    """Say whether a window that is still to be answered opens at a moment."""
    windows = member.asked.windows
    window = windows.last(opens) + 1
    return (member.window is None or window >= member.window) and windows.bounds(window)[0] == opens
