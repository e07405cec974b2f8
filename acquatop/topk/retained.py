"""Rows of the open windows: any number of the best, with those that tie with the last."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from acquatop.topk.columns import among, newest_of
from acquatop.topk.contract import (
    NO_ROWS,
    AnyArray,
    Certainty,
    FloatArray,
    IntArray,
    Rows,
    Scoring,
    Top,
)
from acquatop.topk.dropped_bounds import LOST, DroppedBounds, Rank, best_with, rank_from
from acquatop.topk.groups import bars_of, can_be_best, groups_of
from acquatop.topk.order import ranking
from acquatop.topk.row_pool import RowPool
from acquatop.topk.snapshot import State, pack, reading, rows_of, table_of, unpack

_KIND, _VERSION = "retained", 1
_BEFORE_ALL = -(2**63)
_SLACK = 1024


ColumnOf = Callable[[int], AnyArray]
"""Function that returns one of the carried columns of some rows."""


class Retained:
    """Rows of the open windows, with their merits; only :meth:`thin_out` drops any.

    An arrival costs O(1), a change of values O(rows), an answer one selection among the window's
    rows: O(rows), and O(m log m) for the m that it returns. Memory is O(rows).
    """

    def __init__(self, k: int, scoring: Scoring, *, distinct: bool = False) -> None:
        self.k = k
        self.n = 0
        self.rejected = 0
        self._scoring = scoring
        self._distinct = distinct
        self._current = _BEFORE_ALL
        self._pool = RowPool()
        self._merits: FloatArray = np.empty(0)
        self._lasts: IntArray = np.empty(0, dtype=np.int64)
        self._slots: dict[object, int] = {}
        """Slot of each identity, unless none comes twice."""
        self._lost = DroppedBounds()

    # Arrivals -----------------------------------------------------------------------------------

    def add(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Add arrivals of windows up to ``last``; return the positions of those without a merit."""
        if first > last or not len(arrivals):
            return np.empty(0, dtype=np.int64)
        merits = np.asarray(self._scoring.merits(arrivals.keys, arrivals.parts), dtype=np.float64)
        rejected = np.flatnonzero(np.isnan(merits))
        self.rejected += len(rejected)
        at = np.arange(len(arrivals))
        if not self._distinct:
            at = newest_of(arrivals.identities, arrivals.times)
            at = at[self._make_way(arrivals.take(at))]
        at = at[~np.isnan(merits[at])]
        if len(at):
            self._append(arrivals.take(at), merits[at], np.full(len(at), last))
        self._compact()
        return rejected

    def _append(self, rows: Rows, merits: FloatArray, lasts: IntArray) -> None:
        start = self._pool.append(rows)
        self._merits = np.concatenate((self._merits, merits))
        self._lasts = np.concatenate((self._lasts, lasts))
        if not self._distinct:
            slots = range(start, start + len(rows))
            self._slots.update(zip(rows.identities.tolist(), slots, strict=True))

    def _make_way(self, arrivals: Rows) -> npt.NDArray[np.bool_]:
        """Remove the rows that arrivals replace; return a mask of those that no newer one hides."""
        visible = np.ones(len(arrivals), dtype=np.bool_)
        pairs = enumerate(zip(arrivals.identities.tolist(), arrivals.times.tolist(), strict=True))
        known = [
            (at, self._slots[identity], time)
            for at, (identity, time) in pairs
            if identity in self._slots
        ]
        if known:
            positions, slots, times = (np.array(each) for each in zip(*known, strict=True))
            is_newer = self._pool.take(slots).times > times
            visible[positions[is_newer]] = False
            self._kill(slots[~is_newer])
        return visible

    def _kill(self, slots: IntArray) -> None:
        for identity in self._pool.identities(slots).tolist() if not self._distinct else ():
            self._slots.pop(identity, None)
        self._lasts[slots] = _BEFORE_ALL

    def thin_out(
        self,
        count: int,
        columns: Sequence[int],
        ties: Callable[[ColumnOf], FloatArray | None] | None = None,
    ) -> None:
        """Drop the rows that can neither be nor tie with one of the best ``count`` of their group.

        Rows with the same in some carried ``columns`` are a group. Of equal merits, those come
        first that have the greatest ``ties``, if these are given. Only for merits that never
        change, of arrivals that replace none but their equals. O(n log n).
        """
        at = np.flatnonzero(self._lasts >= max(self._current, _BEFORE_ALL + 1))
        groups = groups_of([self._pool.carried(each, at) for each in columns], len(at))
        merits = self._merits[at]
        order = None if ties is None else ties(lambda each: self._pool.carried(each, at))
        merits = merits if order is None else _together(merits, order)
        can = can_be_best(groups, merits, self._lasts[at], count)
        if not can.all():
            self._kill(at[~can])
            self._compact()

    def note_lost(
        self,
        first: int,
        last: int,
        merit: float = math.inf,
        lows: tuple[float, ...] = (),
        highs: tuple[float, ...] = (),
        rank: Rank | None = None,
    ) -> None:
        """Note that windows have lost an arrival that never came here."""
        if last >= self._current:
            self._lost.note(last, best_with(merit) if rank is None else rank)
            if lows:
                self._lost.widen(last, lows, highs)

    def settle(self, window: int) -> None:
        """Do nothing: rows are held as they come."""

    def remove(self, identities: AnyArray) -> None:
        """Remove rows that are no longer solutions."""
        slots = [self._slots[each] for each in identities.tolist() if each in self._slots]
        if slots:
            self._kill(np.array(slots))

    def change(self, keys: AnyArray) -> Rows:
        """Rescore rows of keys whose remote values changed; return those now without a merit."""
        self._lost.raise_to_reach(self._scoring, keys)
        alive = np.flatnonzero(self._lasts > _BEFORE_ALL)
        slots = alive[among(self._pool.keys(alive), keys)] if len(alive) else alive
        if not len(slots):
            return NO_ROWS
        rows = self._pool.take(slots)
        self._merits[slots] = self._scoring.merits(rows.keys, rows.parts)
        gone = np.isnan(self._merits[slots])
        self._kill(slots[gone])
        return rows.take(np.flatnonzero(gone))

    # Answers ------------------------------------------------------------------------------------

    def top(self, window: int) -> Top:
        """Return the best k of a complete window, and all that tie with the last of them."""
        return self.best(window, self.k)

    def best(self, window: int, count: int) -> Top:
        """Return the best ``count`` of a complete window, and all that tie with the last."""
        at = np.flatnonzero(self._lasts >= window)
        merits = self._merits[at]
        if len(at) > count:
            bar = np.partition(merits, len(at) - count)[len(at) - count]
            at = at[merits >= bar]
        rows, merits = self._in_order(at)
        lost = self._lost.best(window)
        is_sure = len(rows) >= count and lost is not None and float(merits[-1]) > lost.merit
        return self._top(window, rows, merits, None if is_sure else lost)

    def best_of_groups(self, window: int, count: int, columns: Sequence[int]) -> Top:
        """Return the best ``count`` of each group, and all that tie with its last. O(n log n).

        Rows with the same in some carried ``columns`` are a group.
        """
        at = np.flatnonzero(self._lasts >= window)
        merits = self._merits[at]
        groups = groups_of([self._pool.carried(each, at) for each in columns], len(at))
        at = at[merits >= bars_of(groups, merits, count)]
        return self._top(window, *self._in_order(at), self._lost.best(window))

    @staticmethod
    def _top(window: int, rows: Rows, merits: FloatArray, lost: Rank | None) -> Top:
        if lost is None:
            return Top(window, rows, merits)
        return Top(window, rows, merits, Certainty.APPROXIMATE, LOST, lost.merit)

    def _in_order(self, slots: IntArray) -> tuple[Rows, FloatArray]:
        if not len(slots):
            return NO_ROWS, np.empty(0)
        rows, merits = self._pool.take(slots), self._merits[slots]
        order = ranking(merits, rows.times, rows.identities)
        return rows.take(order), merits[order]

    def lost(self, window: int) -> tuple[Rank, tuple[float, ...], tuple[float, ...]] | None:
        """Return the best place of a window's lost arrivals, and their parts' lows and highs."""
        rank, parts = self._lost.best(window), self._lost.parts(window)
        return None if rank is None else (rank, *(parts or ((), ())))

    def inside(self, window: int) -> Rows:
        """Return the rows that lie in a window, as they came. O(rows)."""
        at = np.flatnonzero(self._lasts >= window)
        return self._pool.take(at) if len(at) else NO_ROWS

    def of_keys(self, window: int, keys: AnyArray) -> Rows:
        """Return the rows of a window that have some keys, as they came. O(rows)."""
        at = np.flatnonzero(self._lasts >= window)
        at = at[among(self._pool.keys(at), keys)] if len(at) else at
        return self._pool.take(at) if len(at) else NO_ROWS

    def covering(self, window: int) -> Rows:
        """Return the rows that lie in a window that has been asked for, best first."""
        return self._in_order(np.flatnonzero(self._lasts >= window))[0]

    def held(self) -> Rows:
        """Return all rows held, best first."""
        return self.covering(max(self._current, _BEFORE_ALL + 1))

    def close_before(self, window: int) -> None:
        """Close all windows before this one."""
        self._current = max(self._current, window)
        self._lost.close_before(self._current)
        self._compact()

    def __len__(self) -> int:
        return int(np.count_nonzero(self._lasts >= max(self._current, _BEFORE_ALL + 1)))

    def _compact(self) -> None:
        """Drop rows that no open window holds, once they are as many as the others."""
        count = len(self)
        if len(self._lasts) <= 2 * count + _SLACK:
            return
        kept = np.flatnonzero(self._lasts >= max(self._current, _BEFORE_ALL + 1))
        self._pool.keep(kept)
        self._merits, self._lasts = self._merits[kept], self._lasts[kept]
        if not self._distinct:
            identities = self._pool.identities(np.arange(count)).tolist() if count else []
            self._slots = dict(zip(identities, range(count), strict=True))

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        settings = {
            "k": self.k,
            "rejected": self.rejected,
            "current": self._current,
            "steps": [[last, list(rank)] for last, rank in self._lost.steps],
            "ranges": [
                [last, known.lows, known.highs] for last, known in self._lost.ranges.items()
            ],
        }
        at = np.flatnonzero(self._lasts >= max(self._current, _BEFORE_ALL + 1))
        tables = {}
        if len(at):
            own = {"merits": self._merits[at], "lasts": self._lasts[at]}
            tables["held"] = {**own, **table_of(self._pool.take(at))}
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added."""
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            settings = state.settings
            self.k, self.rejected = settings["k"], settings["rejected"]
            self._current = settings["current"]
            for last, rank in settings["steps"]:
                self._lost.note(last, rank_from(rank))
            for last, lows, highs in settings["ranges"]:
                self._lost.widen(last, tuple(lows), tuple(highs))
            if "held" in state.tables:
                columns = state.tables["held"]
                self._append(rows_of(columns), columns["merits"], columns["lasts"])


def _together(merits: FloatArray, ties: FloatArray) -> FloatArray:
    """Return numbers in the order of merits, and of equal merits in that of ``ties``.

    >>> _together(np.array([2.0, 1.0, 2.0, 2.0]), np.array([1.0, 9.0, 3.0, 1.0])).tolist()
    [1.0, 0.0, 2.0, 1.0]
    """
    order = np.lexsort((ties, merits))
    begins = np.zeros(len(order), dtype=np.bool_)
    for each in (merits[order], ties[order]):
        begins[1:] |= each[1:] != each[:-1]
    found = np.empty(len(order))
    found[order] = np.cumsum(begins)
    return found
