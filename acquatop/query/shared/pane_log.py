"""Log of the arrivals of records, and of solutions without a score, for several queries."""

from __future__ import annotations

import numpy as np

from acquatop.ingest.reduce.shared_best import Panes
from acquatop.ingest.scoring import BoolArray
from acquatop.query.lateness import AnsweredWindows, ArrivalWatermarks
from acquatop.topk.contract import IntArray
from acquatop.topk.snapshot import State, pack, reading, unpack

_KIND, _VERSION = "pane log", 1


class PaneLog:
    """Panes that hold a good record, each with the time of one record, which stands for all.

    Records that are late for a query do not count for it. Memory grows with the panes of the open
    windows, and with the parts in which they came. Adding is O(1); the first question after that
    O(n log n), others O(log n) and the panes examined.
    """

    def __init__(self) -> None:
        self._times = self._unscored = self._inexact = np.empty(0, np.int64)
        self._came = ArrivalWatermarks.in_time(0)
        self._new: list[tuple[IntArray, IntArray, IntArray, ArrivalWatermarks]] = []
        self._count = 0
        self._has_unscored = self._has_inexact = False

    def __len__(self) -> int:
        return self._count

    def add(self, panes: Panes, came: ArrivalWatermarks) -> None:
        """Add panes, with the progress of time at their arrival."""
        self._new.append((panes.times, panes.unscored, panes.inexact, came))
        self._count += len(panes.times)
        self._has_unscored = self._has_unscored or bool(panes.unscored.any())
        self._has_inexact = self._has_inexact or bool(panes.inexact.any())

    def unscored(self, answered: AnsweredWindows, opens: int, closes: int) -> int:
        """Return the number of a query's solutions without a score between two times."""
        if not self._has_unscored:
            return 0
        at = self._between(opens, closes)
        return int(self._unscored[at][~self._late(answered, at)].sum())

    def is_exact(self, answered: AnsweredWindows, opens: int, closes: int) -> bool:
        """Return True if all scores of a query between two times have all digits."""
        if not self._has_inexact:
            return True
        at = self._between(opens, closes)
        return not self._inexact[at][~self._late(answered, at)].any()

    def is_empty(self, answered: AnsweredWindows, opens: int, closes: int) -> bool:
        """Return True if a query has no record between two times."""
        return bool(self._late(answered, self._between(opens, closes)).all())

    def first_after(self, answered: AnsweredWindows, moment: int) -> int | None:
        """Return the time of a query's first record after a moment; None if there is none."""
        self._sort()
        start = int(np.searchsorted(self._times, moment, side="right"))
        at = np.flatnonzero(~self._late(answered, slice(start, None)))
        return int(self._times[start + at[0]]) if len(at) else None

    def newest(self, answered: AnsweredWindows) -> int | None:
        """Return the time of a query's newest record; None if there is none."""
        self._sort()
        at = np.flatnonzero(~self._late(answered, slice(None)))
        return int(self._times[at[-1]]) if len(at) else None

    def release(self, until: int) -> None:
        """Drop panes up to a time."""
        self._sort()
        self._keep(slice(int(np.searchsorted(self._times, until, side="right")), None))

    def _between(self, opens: int, closes: int) -> slice:
        self._sort()
        start, stop = np.searchsorted(self._times, [opens, closes], side="right").tolist()
        return slice(start, stop)

    def _late(self, answered: AnsweredWindows, at: slice) -> BoolArray:
        return answered.are_late(self._times[at], self._came.take(at))

    def _sort(self) -> None:
        if not self._new:
            return
        times, unscored, inexact, came = zip(
            (self._times, self._unscored, self._inexact, self._came), *self._new, strict=True
        )
        self._times, self._unscored = np.concatenate(times), np.concatenate(unscored)
        self._inexact = np.concatenate(inexact)
        self._came = ArrivalWatermarks(
            *(np.concatenate(column) for column in zip(*came, strict=True))
        )
        self._new = []
        self._keep(np.argsort(self._times, kind="stable"))

    def _keep(self, at: IntArray | slice) -> None:
        self._times, self._unscored, self._inexact, self._came = (
            self._times[at],
            self._unscored[at],
            self._inexact[at],
            self._came.take(at),
        )
        self._count = len(self._times)
        self._has_unscored = bool(self._unscored.any())
        self._has_inexact = bool(self._inexact.any())

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state."""
        self._sort()
        numbers = {"unscored": self._unscored, "inexact": self._inexact}
        columns = {"times": self._times, **numbers, **self._came._asdict()}
        return pack(_KIND, _VERSION, State({}, {"panes": columns}))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot; raises ``SnapshotError`` for any other bytes."""
        with reading():
            columns = dict(unpack(_KIND, _VERSION, snapshot).tables["panes"])
            self._times, self._unscored = columns.pop("times"), columns.pop("unscored")
            self._inexact = columns.pop("inexact", np.zeros_like(self._times))
            self._came = ArrivalWatermarks(**columns)
        self._new = []
        self._keep(slice(None))
