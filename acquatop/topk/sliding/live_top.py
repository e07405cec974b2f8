"""The best k while events come and go one by one: for the few that pass a block's bar."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable
from itertools import pairwise

from acquatop.topk.sliding.contract import Best, ChangeLog, Event, best_of


class LiveTop:
    """The best of a window during one block of arrivals, none of which leaves within the block.

    ``events`` are the earlier events that may be among the best k before the block's last event.
    Those at ``until`` or before leave the window within the block. An event takes O(log L) and
    moving at most L list entries; :meth:`trim` keeps L within about twice the events that may still
    matter.

    >>> live, log = LiveTop(k=1, n=4, events=[(9.0, 0), (5.0, 3)], until=1), ChangeLog()
    >>> live.go_on([(6.0, 4), (7.0, 5)], 5, log)
    >>> log.after, log.entered, log.left, live.top().merits.tolist()
    ([4, 5], [4, 5], [0, 4], [7.0])
    """

    def __init__(self, k: int, n: int, events: Iterable[Event], until: int) -> None:
        self.k = k
        self.n = n
        self.events = sorted(events)
        self.bar = -math.inf
        """Merit below which no arrival enters the best within this block."""
        self._until = until
        leaving = (event for event in self.events if event[1] <= until)
        self._leaving = sorted(leaving, key=_position, reverse=True)
        self._room = 0

    @property
    def next_leaving(self) -> int | None:
        """Position of the event with which the next one leaves; None if none leaves here."""
        return self._leaving[-1][1] + self.n if self._leaving else None

    def trim(self) -> None:
        """Drop events that can no longer be among the best in this block.

        O(L) if their number has doubled since the last time, else O(1).
        """
        if len(self.events) <= self._room:
            return
        staying = 0
        for at in range(len(self.events) - 1, -1, -1):
            staying += self.events[at][1] > self._until
            if staying == self.k:
                self.bar = self.events[at][0]
                del self.events[:at]
                break
        self._room = 2 * len(self.events) + 64

    def go_on(self, arrivals: Iterable[Event], until: int, log: ChangeLog) -> None:
        """Process arrivals in order, and departures, up to the event at ``until``."""
        events, k = self.events, self.k
        for event in arrivals:
            position = event[1]
            self._leave(position, log)
            at = bisect_left(events, event)
            events.insert(at, event)
            if at < len(events) - k:
                continue
            if log.after and log.after[-1] == position:
                # An event left with this one: the place that was filled goes to the arrival.
                log.merits[-1], log.entered[-1] = event
            else:
                log.note(position, event, events[-k - 1] if len(events) > k else None)
        self._leave(until, log)

    def top(self) -> Best:
        """Return the best k."""
        return best_of(self.events, self.k)

    def _leave(self, position: int, log: ChangeLog) -> None:
        """Remove all events that leave the window up to the event at a position."""
        events, leaving, k = self.events, self._leaving, self.k
        while leaving and leaving[-1][1] + self.n <= position:
            event = leaving.pop()
            at = bisect_left(events, event)
            if at == len(events) or events[at] != event:
                continue  # trimmed
            del events[at]
            if at >= len(events) + 1 - k:
                log.note(event[1] + self.n, events[-k] if len(events) >= k else None, event)

    def _check(self) -> None:
        assert all(worse < better for worse, better in pairwise(self.events))
        assert all(older[1] > newer[1] for older, newer in pairwise(self._leaving))
        assert not any(math.isnan(merit) for merit, _ in self.events)


def _position(event: Event) -> int:
    return event[1]
