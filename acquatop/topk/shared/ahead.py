"""Arrivals that no close has reached yet: by time, and no more of them than can still matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray, Rows, Scoring
from acquatop.topk.pane_top import Scored
from acquatop.topk.row_pool import columns_of
from acquatop.topk.shared.skyline import best_of_panes


class Ahead:
    """Scored arrivals after some moment, taken in any order and given out by time.

    Of a pane, which is what lies between two neighbouring boundaries of any query, only the best k can
    matter; which these are is looked up when as many have come as wait already, and ``room`` at least. So
    about twice k of each pane wait at most, or ``room``. An arrival costs O(1), and O(log n) if it comes out of order.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._waiting: list[Scored] = []
        self._size = 0
        self._kept = 0
        self._is_sorted = True

    def __len__(self) -> int:
        return self._size

    def append(self, merits: FloatArray, rows: Rows) -> None:
        """Take in arrivals, all of which have a merit."""
        if len(rows):
            self._waiting.append(Scored(merits, rows))
            self._size += len(rows)
            self._is_sorted = False

    def thin(self, k: int, ends: Callable[[IntArray], IntArray]) -> None:
        """Let go of what k better ones of the same pane hide, where enough has come to be worth it.

        ``ends`` says of times in order where the pane of each ends.
        """
        if self._size - self._kept <= max(self._room, self._kept):
            return
        all_of = self._sorted()
        rows = all_of.rows
        at = best_of_panes(k, all_of.merits, rows.times, rows.identities, ends(rows.times))
        # A copy: what was let go would be held on to by a part of it.
        self._waiting = [Scored(all_of.merits.take(at), rows.take(at))]
        self._size = self._kept = len(at)

    def take(self, until: int) -> Scored | None:
        """Return all up to a time, in the order of time, and hold it no longer; None if there is nothing."""
        if not self._size:
            return None
        all_of = self._sorted()
        stop = int(np.searchsorted(all_of.rows.times, until, side="right"))
        if not stop:
            return None
        taken = Scored(all_of.merits[:stop], all_of.rows.take(slice(stop)))
        self._waiting = [Scored(all_of.merits[stop:], all_of.rows.take(slice(stop, None)))]
        self._size -= stop
        self._kept = max(0, self._kept - stop)
        return taken

    def time_of(self, position: int) -> int | None:
        """Return the time of the arrival that so many come before; None if there are no more."""
        return int(self._sorted().rows.times[position]) if position < self._size else None

    def _sorted(self) -> Scored:
        if self._is_sorted:
            return self._waiting[0]
        together = self._waiting[0]
        if len(self._waiting) > 1:
            rows = Rows.together(each.rows for each in self._waiting)
            together = Scored(np.concatenate([each.merits for each in self._waiting]), rows)
        times = together.rows.times
        if (times[1:] < times[:-1]).any():
            order = np.argsort(times, kind="stable")
            together = Scored(together.merits.take(order), together.rows.take(order))
        self._waiting, self._is_sorted = [together], True
        return together

    def waiting(self) -> Scored | None:
        """Return all that waits, in the order of time; None if nothing does."""
        return self._sorted() if self._size else None

    @property
    def nbytes(self) -> int:
        """How many bytes the columns of what waits take."""
        return sum(
            each.merits.nbytes + sum(column.nbytes for column in columns_of(each.rows)) for each in self._waiting
        )

    def _check(self) -> None:
        """Assert every invariant."""
        assert self._size == sum(map(len, self._waiting))
        assert not any(np.isnan(each.merits).any() for each in self._waiting)
        if self._is_sorted and self._size:
            assert (np.diff(self._sorted().rows.times) >= 0).all()


def score(scoring: Scoring, arrivals: Rows, now: int) -> tuple[Scored, IntArray]:
    """Return arrivals with their merits, without those that have none; and the positions of these.

    Raises ``ValueError`` if time has gone on past any of them.
    """
    late = int(np.count_nonzero(arrivals.times <= now))
    if late:
        first = int((arrivals.times <= now).nonzero()[0][0])
        raise ValueError(
            f"{late} of {len(arrivals)} arrivals are late, first {arrivals.identities[first]} at "
            f"{arrivals.times[first]}: time has gone on to {now}"
        )
    merits = np.asarray(scoring.merits(arrivals.keys, arrivals.parts), dtype=np.float64)
    without = np.isnan(merits)
    if not without.any():
        return Scored(merits, arrivals), np.empty(0, dtype=np.int64)
    at = (~without).nonzero()[0]
    return Scored(merits[at], arrivals.take(at)), without.nonzero()[0]
