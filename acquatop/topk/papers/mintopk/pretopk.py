"""PreTopk (Yang et al., EDBT 2011): the predicted top k of every open window, in separate lists.

For scores that never change, and identities that never come again. Simpler than
:class:`~acquatop.topk.papers.mintopk.mintopk.MinTopk`, with the same candidates, but an arrival
costs as much in every window that it enters.
"""

from __future__ import annotations

from bisect import bisect, insort
from itertools import pairwise
from typing import Any

import numpy as np

from acquatop.topk.contract import FirstPart, IntArray, Rows, Scoring, Top
from acquatop.topk.papers.mintopk.candidate import NOTHING, Candidate, Layout, rank_of
from acquatop.topk.papers.mintopk.steady import Steady
from acquatop.topk.snapshot import State, pack, unpack

_BEFORE_ALL = -(2**63)
_KIND, _VERSION = "pretopk", 1


class PreTopk(Steady):
    """The top k of every open window, by the arrivals so far; every answer is exact.

    For each window it lies in, an arrival takes O(log k) to be compared, and O(k) to be inserted.
    An answer takes O(k). At most k are held of each window.

    >>> held = PreTopk(k=2)
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
        self._windows: dict[int, list[Candidate]] = {}

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
        for candidate in self._layout.candidates(
            arrivals.take(scored), merits[scored], first, last
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
        return self.predicted(window)

    def predicted(self, window: int) -> Top:
        """Return the best k of a window if nothing else were to arrive."""
        best = self._windows.get(window, [])
        return Top(
            window,
            self._layout.rows(best),
            np.array([each.merit for each in best], dtype=np.float64),
        )

    def close_before(self, window: int) -> None:
        """Close all windows before this one."""
        self._current = max(self._current, window)
        for closed in [index for index in self._windows if index < window]:
            del self._windows[closed]

    def held(self) -> Rows:
        """Return all rows that are held, best first."""
        return self._layout.rows(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> list[Candidate]:
        distinct = {each.rank: each for best in self._windows.values() for each in best}
        return sorted(distinct.values(), key=rank_of)

    def _insert(self, arrival: Candidate) -> None:
        for window in range(max(arrival.first, self._current), arrival.last + 1):
            best = self._windows.setdefault(window, [])
            if bisect(best, arrival.rank, key=rank_of) < self.k:
                insort(best, arrival, key=rank_of)
                del best[self.k :]

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        settings: dict[str, Any] = {
            "k": self.k,
            "rejected": self.rejected,
            "current": self._current,
        }
        settings["layout"] = self._layout.settings()
        return pack(_KIND, _VERSION, State(settings, {"held": self._layout.table(self._all())}))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added.

        Raise ``SnapshotError`` for any other bytes.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        self.k = state.settings["k"]
        self.rejected, self._current = state.settings["rejected"], state.settings["current"]
        self._layout = Layout.of_settings(state.settings["layout"])
        for candidate in self._layout.of_table(state.tables["held"]):
            self._insert(candidate)

    def _check(self) -> None:
        """Assert every invariant. O(W·k)."""
        for window, best in self._windows.items():
            assert window >= self._current
            assert 0 < len(best) <= self.k
            assert all(each.covers(window) for each in best)
            assert all(better.rank < worse.rank for better, worse in pairwise(best))
