"""MinTopk (Yang et al., EDBT 2011): predicted top k of all open windows in one marked list.

For scores that never change, and identities that never come again. Each entry of the super-top-k
list carries the first and the last window in whose top k it is predicted to be. Each full window
points to the last of its top k (its lower bound pointer).

The paper's pseudo-code (its Figure 6) is wrong in some points. Differences:

- A new window has no pointer until it holds k. Then it is the list's last entry: a later arrival
  behind it would be outranked by k that live longer.
- A window that holds fewer than k counts every arrival in it, however low.
- Windows are updated oldest first, and an entry that is in no window any more is removed at once.
  Only then is the entry before a window's last the next to last of the same window, to which its
  pointer moves.
- Every arrival has its own last window: if the slide does not divide the width, these differ. Panes
  that begin in a future window wait until it is the oldest: the marks are right only if every
  listed entry lies in the oldest open window. The best k of each such pane are enough.
- Closing continues over any number of windows, also empty ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from sortedcontainers import SortedKeyList

from acquatop.topk.contract import FirstPart, IntArray, Rows, Scoring, Top
from acquatop.topk.papers.mintopk.candidate import NOTHING, Candidate, Layout, rank_of
from acquatop.topk.papers.mintopk.steady import Steady
from acquatop.topk.snapshot import State, pack, unpack

_BEFORE_ALL = -(2**63)
_CHUNK = 1_000
"""Largest number of arrivals compared with the windows' bars at once: most enter none."""
_KIND, _VERSION = "mintopk", 1


class MinTopk(Steady):
    """Minimal candidates for the top k of every open window; every answer is exact.

    With L entries of W open windows, an arrival takes O(log L + w) for the w windows that it
    enters, and O(1) for each window that it does not. An answer and closing take O(L). L is at most
    W·k. Of arrivals only in future windows, at most k of each pane are held.

    >>> held = MinTopk(k=2)
    >>> rejected = held.add(
    ...     0,
    ...     1,
    ...     Rows(np.array([3, 4, 5]), np.array([*"abc"]), np.array([*"abc"]), (np.arange(3.0),)),
    ... )
    >>> held.top(0).rows.identities.tolist(), len(held)
    (['c', 'b'], 2)
    """

    def __init__(self, k: int, scoring: Scoring | None = None) -> None:
        if k < 1:
            raise ValueError("k must be at least 1")
        self.k = k
        self.rejected = 0
        self._scoring = scoring or FirstPart()
        self._layout = NOTHING
        self._current = _BEFORE_ALL
        self._list: SortedKeyList[Candidate] = SortedKeyList(key=rank_of)
        self._counts: dict[int, int] = {}
        self._pointers: dict[int, Candidate] = {}
        self._ahead: dict[tuple[int, int], list[Candidate]] = {}

    def add(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Add arrivals of windows ``first`` to ``last``; return the positions of the rejected."""
        if first > last or not len(arrivals):
            return np.empty(0, dtype=np.int64)
        if last < self._current:
            raise ValueError(
                f"the windows {first} to {last} are closed: the oldest that is open is "
                f"{self._current}"
            )
        self._layout = self._layout.widened(arrivals)
        merits = self._scoring.merits(arrivals.keys, arrivals.parts)
        without = np.isnan(merits)
        scored = np.flatnonzero(~without)
        if first > self._current:
            candidates = self._layout.candidates(arrivals.take(scored), merits[scored], first, last)
            waiting = self._ahead.get((first, last), []) + candidates
            self._ahead[first, last] = sorted(waiting, key=rank_of)[: self.k]
        else:
            for start in range(0, len(scored), _CHUNK):
                at = scored[start : start + _CHUNK]
                at = at[merits[at] >= self._bar(last)]
                for candidate in self._layout.candidates(
                    arrivals.take(at), merits[at], first, last
                ):
                    self._insert(candidate)
        self.rejected += len(arrivals) - len(scored)
        return np.flatnonzero(without)

    def top(self, window: int) -> Top:
        """Return the best k of a complete window. Ask for windows oldest first."""
        if window < self._current:
            raise ValueError(
                f"window {window} is closed: the oldest that is open is {self._current}"
            )
        self.close_before(window)
        return self.predicted(window)

    def predicted(self, window: int) -> Top:
        """Return the best k of a window if nothing else were to arrive."""
        listed = [each for each in self._list if each.start <= window <= each.last]
        ahead = [each for group in self._ahead.values() for each in group if each.covers(window)]
        best = sorted([*listed, *ahead], key=rank_of)[: self.k]
        return Top(
            window,
            self._layout.rows(best),
            np.array([each.merit for each in best], dtype=np.float64),
        )

    def close_before(self, window: int) -> None:
        """Close all windows before this one, and insert the panes that waited for it."""
        if window <= self._current:
            return
        self._current = window
        for candidate in list(self._list):
            candidate.start = max(candidate.start, window)
            if candidate.start > candidate.last:
                self._list.remove(candidate)
        for closed in [index for index in self._counts if index < window]:
            del self._counts[closed]
            self._pointers.pop(closed, None)
        for span in sorted(span for span in self._ahead if span[0] <= window):
            for candidate in self._ahead.pop(span):
                self._insert(candidate)

    def held(self) -> Rows:
        """Return all rows that are held, best first."""
        return self._layout.rows(sorted(self._all(), key=rank_of))

    def __len__(self) -> int:
        return len(self._list) + sum(map(len, self._ahead.values()))

    def _all(self) -> Iterator[Candidate]:
        yield from self._list
        for group in self._ahead.values():
            yield from group

    def _insert(self, arrival: Candidate) -> None:
        """Insert an arrival into the windows whose top k it enters: a range up to its last."""
        arrival.start = self._current
        while arrival.start <= arrival.last and not self._enters(arrival, arrival.start):
            arrival.start += 1
        if arrival.start > arrival.last:
            return
        self._list.add(arrival)
        for window in range(arrival.start, arrival.last + 1):
            if window in self._pointers:
                self._push_out_last(window)
            else:
                self._count_up(window)

    def _bar(self, last: int) -> float:
        """Return a merit below which no arrival enters any window up to ``last``."""
        pointers = [self._pointers.get(window) for window in range(self._current, last + 1)]
        return min(
            (-math.inf if pointer is None else pointer.merit for pointer in pointers),
            default=-math.inf,
        )

    def _enters(self, arrival: Candidate, window: int) -> bool:
        last = self._pointers.get(window)
        return last is None or arrival.rank < last.rank

    def _count_up(self, window: int) -> None:
        self._counts[window] = self._counts.get(window, 0) + 1
        if self._counts[window] == self.k:
            self._pointers[window] = self._list[-1]

    def _push_out_last(self, window: int) -> None:
        leaving = self._pointers[window]
        self._pointers[window] = self._list[self._list.index(leaving) - 1]
        leaving.start += 1
        if leaving.start > leaving.last:
            self._list.remove(leaving)

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        settings: dict[str, Any] = {
            "k": self.k,
            "rejected": self.rejected,
            "current": self._current,
        }
        settings["layout"] = self._layout.settings()
        ahead = (each for group in self._ahead.values() for each in group)
        tables = {"list": self._layout.table(self._list), "ahead": self._layout.table(ahead)}
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added.

        Raise ``SnapshotError`` for any other bytes.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        self.k = state.settings["k"]
        self.rejected, self._current = state.settings["rejected"], state.settings["current"]
        self._layout = Layout.of_settings(state.settings["layout"])
        for candidate in self._layout.of_table(state.tables["list"]):
            self._list.add(candidate)
            for window in range(candidate.start, candidate.last + 1):
                self._count_up(window)
        for candidate in self._layout.of_table(state.tables["ahead"]):
            self._ahead.setdefault((candidate.first, candidate.last), []).append(candidate)

    def _check(self) -> None:
        """Assert every invariant. O(L·W)."""
        self._list._check()
        for candidate in self._list:
            assert candidate.first <= self._current <= candidate.start <= candidate.last
        for window in {
            window for each in self._list for window in range(self._current, each.last + 1)
        }:
            covering = [each for each in self._list if each.covers(window)]
            members = [each for each in self._list if each.start <= window <= each.last]
            assert members == covering[: self.k], "a window mark is wrong"
            assert self._counts.get(window, 0) == len(members)
            assert self._pointers.get(window) is (members[-1] if len(members) == self.k else None)
        assert set(self._pointers) <= set(self._counts)
        assert all(window >= self._current for window in self._counts)
        for (first, _), group in self._ahead.items():
            assert first > self._current
            assert len(group) <= self.k
