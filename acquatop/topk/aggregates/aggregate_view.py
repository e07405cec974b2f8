"""View of the keys at or above a bar: at least the best k, few enough to sort at every close."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from acquatop.topk.aggregates.partials import NEVER
from acquatop.topk.contract import AnyArray, FloatArray, IntArray
from acquatop.topk.order import best

Newest: TypeAlias = Callable[[IntArray], IntArray]
Bar: TypeAlias = tuple[float, int, Any]
"""A place in the one total order: merit, time, and the key's name."""

EVERYTHING: Bar = (-np.inf, NEVER, None)
_NOTHING: Bar = (np.inf, NEVER, None)
# No time is this old, so names are never compared with these.

SLACK = 64
"""Least surplus over k of the keys that are held."""
OVERFULL = 3
"""Multiple of the keys wanted above which the bar is raised."""


class BarView:
    """Exactly the keys at or above a bar in the total order, ties included.

    Only a key with a changed merit or newest time can cross the bar. While k keys stand above it,
    nothing below matters. If fewer do, the bar is lowered, which reads all keys. If too many do, it
    is raised, which reads only the members. A merit of NaN has no place. ``names`` maps keys to
    their names, by which they are ordered.
    """

    def __init__(self, k: int, names: Callable[[IntArray], AnyArray] = lambda keys: keys) -> None:
        self._k = k
        self._names = names
        self._bar: Bar | None = None
        self._inside = np.empty(0, dtype=np.bool_)
        self._members = np.empty(0, dtype=np.int64)
        self.refills = 0

    def __len__(self) -> int:
        """Return the number of keys at or above the bar."""
        return len(self._members)

    def grow(self, size: int) -> None:
        """Make room for more keys."""
        wider = np.zeros(size, dtype=np.bool_)
        wider[: len(self._inside)] = self._inside
        self._inside = wider

    def update(self, touched: IntArray, merits: FloatArray, newest: Newest) -> None:
        """Let keys that may have changed, each given once, cross the bar. O(touched + members)."""
        if self._bar is None:
            self.scan(merits, newest)
            return
        above = self._above(self._bar, touched, merits, newest)
        inside = self._inside[touched]
        self._inside[touched] = above
        if (inside & ~above).any():
            self._members = self._members[self._inside[self._members]]
        self._members = np.concatenate([self._members, touched[above & ~inside]])
        self._fit(len(touched), merits, newest)

    def scan(self, merits: FloatArray, newest: Newest) -> None:
        """Recompute the members, if most keys may have changed. O(keys)."""
        bar = self._bar or _NOTHING
        at_least = np.flatnonzero(merits >= bar[0])
        self._bar = bar
        self._replace(at_least[self._above(bar, at_least, merits, newest)])
        self._fit(0, merits, newest)

    def best(self, merits: FloatArray, newest: Newest) -> IntArray:
        """Return the best k keys, best first; all with a merit if they are fewer."""
        members = self._members
        return members[best(self._k, merits[members], newest(members), self._names(members))]

    def _fit(self, touched: int, merits: FloatArray, newest: Newest) -> None:
        if len(self._members) < self._k and self._bar != EVERYTHING:
            self.refills += 1
            self._cut(np.flatnonzero(merits == merits), touched, merits, newest)
        elif len(self._members) > OVERFULL * self._wanted(touched):
            self._cut(self._members, touched, merits, newest)

    def _wanted(self, touched: int) -> int:
        """Return the number of keys to hold.

        The surplus over k is as large as the number of keys that a close may touch, since touching
        them costs as much anyway.
        """
        return self._k + max(self._k, SLACK, touched)

    def _cut(self, among: IntArray, touched: int, merits: FloatArray, newest: Newest) -> None:
        """Set the bar at the wanted rank, or admit all keys if there are no more than that."""
        wanted = self._wanted(touched)
        if len(among) <= wanted:
            self._bar = EVERYTHING
            self._replace(among)
            return
        kept = among[best(wanted, merits[among], newest(among), self._names(among))]
        lowest = kept[-1:]
        self._bar = float(merits[lowest[0]]), int(newest(lowest)[0]), self._names(lowest)[0]
        self._replace(kept)

    def _replace(self, members: IntArray) -> None:
        self._inside[self._members] = False
        self._inside[members] = True
        self._members = members

    def _above(
        self, bar: Bar, keys: IntArray, merits: FloatArray, newest: Newest
    ) -> npt.NDArray[np.bool_]:
        merit, time, last = bar
        of_keys = merits[keys]
        above: npt.NDArray[np.bool_] = of_keys > merit
        tied = np.flatnonzero(of_keys == merit)
        if len(tied):
            times = newest(keys[tied])
            above[tied] = times > time
            level = tied[times == time]
            if len(level):
                above[level] = self._names(keys[level]) <= last
        return above

    def _check(self, merits: FloatArray, newest: Newest) -> None:
        """Assert that the members are exactly the keys at or above the bar."""
        assert len(np.unique(self._members)) == len(self._members)
        assert set(self._members.tolist()) == set(np.flatnonzero(self._inside).tolist())
        if self._bar is not None:
            valid = np.flatnonzero(merits == merits)
            above = valid[self._above(self._bar, valid, merits, newest)]
            assert set(above.tolist()) == set(self._members.tolist())
            assert len(self._members) >= min(self._k, len(valid))
