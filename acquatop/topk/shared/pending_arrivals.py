"""Buffer of arrivals that no close has reached yet, by time, pruned to those that can matter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from acquatop.topk.contract import FloatArray, IntArray, Rows, Scoring
from acquatop.topk.pane_top import Scored
from acquatop.topk.row_pool import columns_of
from acquatop.topk.shared.skyline import best_of_panes


class PendingArrivals:
    """Scored arrivals after some moment: added in any order, taken in time order.

    A pane lies between two neighbouring boundaries of any query, and only its best k can matter.
    Panes are pruned once more arrivals have come than the last pruning left, and more than
    ``room``. So at most k per pane wait, plus as many again or ``room``, whichever is more. An
    arrival costs amortised O(1), and O(log n) if it comes out of order.
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
        """Add arrivals that all have a merit."""
        if len(rows):
            self._waiting.append(Scored(merits, rows))
            self._size += len(rows)
            self._is_sorted = False

    def thin(self, k: int, ends: Callable[[IntArray], IntArray]) -> None:
        """Drop arrivals that k better ones of their pane hide, once enough new ones have come.

        ``ends`` maps times, in order, to the ends of their panes.
        """
        if self._size - self._kept <= max(self._room, self._kept):
            return
        all_of = self._sorted()
        rows = all_of.rows
        at = best_of_panes(k, all_of.merits, rows.times, rows.identities, ends(rows.times))
        # Copied: a view would keep the dropped rows in memory.
        self._waiting = [Scored(all_of.merits.take(at), rows.take(at))]
        self._size = self._kept = len(at)

    def take(self, until: int) -> Scored | None:
        """Remove and return all arrivals up to a time, in time order; None if there are none."""
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
        """Return the time of the arrival at a position in time order; None if there are fewer."""
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
        """Return all waiting arrivals in time order; None if there are none."""
        return self._sorted() if self._size else None

    @property
    def nbytes(self) -> int:
        """Bytes of the waiting arrivals' columns."""
        return sum(
            each.merits.nbytes + sum(column.nbytes for column in columns_of(each.rows))
            for each in self._waiting
        )

    def _check(self) -> None:
        """Assert every invariant."""
        assert self._size == sum(map(len, self._waiting))
        assert not any(np.isnan(each.merits).any() for each in self._waiting)
        if self._is_sorted and self._size:
            assert (np.diff(self._sorted().rows.times) >= 0).all()


def score(scoring: Scoring, arrivals: Rows, now: int) -> tuple[Scored, IntArray]:
    """Return the arrivals that have a merit, scored, and the positions of the others.

    Raise ``ValueError`` if any arrival is late: not after ``now``.
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
