"""The best k of some events and their candidates in two sorted trees: base of all k-skybands.

These are the paper's *top-k tree* and *candidate tree*. As windows count events, the event that
leaves is known by its position, so a dictionary replaces the paper's time tree.

With each event one leaves the window, and one or two enter. All this is done first, then one
:meth:`Trees.refill`, then one :meth:`Trees.changed`: an event that enters the best and leaves at
once is never reported.
"""

from __future__ import annotations

from typing import Protocol

from sortedcontainers import SortedList

from acquatop.topk.sliding.contract import Event


class Skyband(Protocol):
    """Part of a window's last events, with all that may be in its top k.

    For a query or for a filter.
    """

    trees: Trees

    def leave(self, position: int) -> None:
        """Remove the event at a position, which has left the window, if held."""

    def insert(self, event: Event) -> None:
        """Add an event."""

    def settle(self) -> None:
        """Refill the best, after all changes that one event brings."""

    def _check(self) -> None:
        """Assert every invariant."""


class Trees:
    """The two trees.

    Between :meth:`refill` and the next change no candidate is better than any of the best, and
    there are k of these or no candidates. Everything takes O(log L).

    >>> trees = Trees(k=1)
    >>> trees.insert((5.0, 0)); trees.insert((7.0, 1)); trees.refill()
    >>> trees.best[0], list(trees.candidates), trees.changed()
    ((7.0, 1), [(5.0, 0)], ((7.0, 1), None))
    """

    def __init__(self, k: int) -> None:
        self.k = k
        self.best: SortedList[Event] = SortedList()
        self.candidates: SortedList[Event] = SortedList()
        self._merits: dict[int, float] = {}
        """Merits of all events held, by position."""
        self._came: set[Event] = set()
        self._went: set[Event] = set()

    def insert(self, event: Event) -> None:
        """Add an event; a better one may move the last of the best to the candidates."""
        self._merits[event[1]] = event[0]
        if not self.best or event < self.best[0]:
            self.candidates.add(event)
            return
        self._enter(event)
        if len(self.best) > self.k:
            self.candidates.add(self._leave(self.best[0]))

    def leave(self, position: int) -> bool:
        """Remove the event at a position, and return true if it was held."""
        merit = self._merits.pop(position, None)
        if merit is None:
            return False
        event = (merit, position)
        if self.best and event >= self.best[0]:
            self._leave(event)
        else:
            self.candidates.remove(event)
        return True

    def drop(self, event: Event) -> None:
        """Remove a candidate."""
        self.candidates.remove(event)
        del self._merits[event[1]]

    def drop_last(self) -> Event:
        """Remove and return the last candidate."""
        event: Event = self.candidates.pop(0)
        del self._merits[event[1]]
        return event

    def refill(self) -> None:
        """Move the best candidates to the free places."""
        while len(self.best) < self.k and self.candidates:
            self._enter(self.candidates.pop())

    def among_best(self, event: Event) -> bool:
        """Return true if an event would be among the best, or is."""
        return len(self.best) < self.k or event >= self.best[0]

    def changed(self) -> tuple[Event | None, Event | None]:
        """Return the event that entered the best and the one that left since the last call.

        There is at most one of each.
        """
        if not self._came and not self._went:
            return None, None
        assert len(self._came) <= 1, "more than one came among the best with one event"
        assert len(self._went) <= 1, "more than one went with one event"
        change = next(iter(self._came), None), next(iter(self._went), None)
        self.forget_changes()
        return change

    def forget_changes(self) -> None:
        """Forget the changes, if no caller needs them."""
        self._came.clear()
        self._went.clear()

    def __len__(self) -> int:
        return len(self._merits)

    def _enter(self, event: Event) -> None:
        self.best.add(event)
        if event in self._went:
            self._went.remove(event)
        else:
            self._came.add(event)

    def _leave(self, event: Event) -> Event:
        self.best.remove(event)
        if event in self._came:
            self._came.remove(event)
        else:
            self._went.add(event)
        return event

    def _check(self) -> None:
        assert len(self.best) == self.k or not self.candidates
        assert not self.candidates or self.candidates[-1] < self.best[0]
        assert len(self.best) + len(self.candidates) == len(self._merits), "an event is held twice"
        assert self._merits == {
            position: merit for merit, position in (*self.best, *self.candidates)
        }
