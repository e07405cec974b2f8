"""The top k of keys by an aggregate of their events in the window: all that is the same however it is ranked.

No pane can be pruned here: any key may still become the greatest sum. So every key's aggregate is
kept, exactly (:mod:`acquatop.topk.aggregates.exact_sums`), and every answer is exact for the values given.
Only merits are kept beside: :class:`~acquatop.topk.aggregates.aggregate_view.View` finds the best among them.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import numpy.typing as npt

from acquatop.topk.aggregates.aggregate_totals import Aggregate, Totals
from acquatop.topk.aggregates.aggregate_view import View
from acquatop.topk.aggregates.partials import Folder, Numbering, Partial, packed, unpacked
from acquatop.topk.aggregates.side_by_side import Columnwise
from acquatop.topk.contract import AnyArray, FloatArray, IntArray, Rows, Scoring, Top
from acquatop.topk.order import ranking
from acquatop.topk.snapshot import SnapshotError, State, pack, unpack

_KIND, _VERSION = "aggregate", 2
_FOLD_AT = 1 << 15
_BLOCK = 1 << 14
"""How many keys are scored at once, so that what is between the steps stays in the processor's cache."""
_FEW = 64
_NO_KEY = 1 << 63


@dataclass
class _Pane:
    """A pane of no window asked for so far: the last few events as they are, those before them folded."""

    events: list[tuple[IntArray, IntArray, Columnwise]] = field(default_factory=list)
    partials: list[Partial] = field(default_factory=list)
    size: int = 0


class KeyedAggregate(ABC):
    """The contract of :mod:`acquatop.topk.contract` for aggregates per key.

    Keys are small whole numbers from zero, and are the identities. ``parts`` hold a value for each
    aggregate (for COUNT they may hold anything); of the rows given back, the aggregates. The times
    given back are the newest of each key's events in the window. A key without an event in the
    window is no candidate; one whose merit is NaN is none until its merit changes. A window may be
    asked for again, after changes, until a later one is.

    Where keys are numbers that stand for something else, ``names`` gives what their order is: a key
    without events may come to stand for another thing.

    Memory is O(keys), and O(keys touched) for each pane; of events, only a few are kept.
    """

    def __init__(
        self,
        k: int,
        aggregates: Aggregate | str | Sequence[Aggregate | str],
        scoring: Scoring,
        names: Callable[[IntArray], AnyArray] = lambda keys: keys,
    ) -> None:
        if k < 1:
            raise ValueError("k must be at least 1")
        self.k = k
        self.rejected = 0
        several = [aggregates] if isinstance(aggregates, str) else aggregates
        self._aggregates = tuple(map(Aggregate, several))
        self._scoring = scoring
        self._open: int | None = None
        self._known = 0
        self._totals = Totals(self._aggregates)
        self._numbering = Numbering()
        self._folder = Folder(self._totals.folding, self._numbering)
        self._waiting: dict[tuple[int, int], _Pane] = {}
        self._merits: FloatArray = np.empty(0)
        self._all = np.arange(0)
        self._names = names
        self._view = View(k, names)
        self._touched: list[Partial | IntArray] = []

    def add(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Take in arrivals that lie in the windows ``first`` to ``last``; return the positions of the rejected.

        O(n). What lies in no window (``first`` after ``last``) is passed over.
        """
        if first <= last and self._open is not None and last < self._open:
            raise ValueError(f"windows {first} to {last} have closed: the oldest that is open is {self._open}")
        keys: IntArray = np.asarray(arrivals.keys, dtype=np.int64)
        # One look for two: a negative number without its sign is greater than any key.
        if len(keys) and int(keys.view(np.uint64).max()) >= _NO_KEY:
            raise ValueError(f"keys must be whole numbers from zero, not {keys.min()}")
        times: IntArray = np.asarray(arrivals.times, dtype=np.int64)
        values, rejected = self._values(arrivals)
        if len(rejected):
            keys, times = np.delete(keys, rejected), np.delete(times, rejected)
            values = tuple(np.delete(column, rejected) for column in values)
            self.rejected += len(rejected)
        if first <= last and len(keys):
            self._take_in(self._waiting.setdefault((first, last), _Pane()), keys, times, values)
        return rejected

    def change(self, keys: AnyArray) -> Rows:
        """Score keys anew, and return those in the window that have no merit now, by key.

        O(m). They remain known: their aggregates go on, and they may have a merit after another change.
        """
        codes: IntArray = np.asarray(keys, dtype=np.int64)
        codes = self._numbering.distinct(codes[(codes >= 0) & (codes < self._known)])
        if not len(codes):
            return self._rows(codes)
        self._touched.append(codes)
        self._score(codes)
        lost = codes[self._totals.alive(codes) & np.isnan(self._merits[codes])]
        return self._rows(np.sort(lost))

    def withdraw(
        self, lasts: IntArray, keys: IntArray, parts: Columnwise, left: Callable[[int, IntArray], Rows] | None
    ) -> None:
        """Take some events out of the window last asked for, each in by the last of the windows that it was in.

        ``left`` says which events of some keys are left, of those in by a last window; None says that
        for each event taken out there is an equal one in, newer, that stays for longer. O(all that is
        in by these windows), and with ``left`` all that is held.
        """
        if not len(keys):
            return
        values = self._columns(len(keys), parts)
        order = np.argsort(lasts, kind="stable")
        each, starts = np.unique(lasts[order], return_index=True)
        for last, at in zip(each.tolist(), np.split(order, starts[1:]), strict=True):
            its = None if left is None else functools.partial(self._left, left, last)
            taken = self._folder.taken(keys[at], tuple(column[at] for column in values), its)
            self._totals.withdraw(last, taken, self._folder, afresh=left is not None)
            self._touched.append(taken)
        if left is not None:
            self._totals.look_up(self._numbering.distinct(keys))

    def _left(
        self, left: Callable[[int, IntArray], Rows], last: int, keys: IntArray
    ) -> tuple[IntArray, IntArray, Columnwise]:
        rows = left(last, keys)
        return rows.keys, rows.times, self._columns(len(rows), rows.parts)

    def remove(self, identities: AnyArray) -> None:
        """Forget all events of some keys so far, also those of windows to come. O(all that is held)."""
        codes: IntArray = np.asarray(identities, dtype=np.int64)
        codes = self._numbering.distinct(codes[(codes >= 0) & (codes < self._known)])
        if not len(codes):
            return
        gone = np.zeros(self._known, dtype=np.bool_)
        gone[codes] = True
        for pane in self._waiting.values():
            pane.partials = list(_without(gone, self._folded(pane)))
        inside = list(self._totals.inside())
        self._totals.rebuild([(last, kept) for last, partial in inside for kept in _without(gone, [partial])])
        self._touched.append(codes)

    def top(self, window: int) -> Top:
        """Return the best k of a window; what only earlier ones hold is gone after that."""
        if self._open is not None and window < self._open:
            raise ValueError(f"window {window} has closed: the oldest that is open is {self._open}")
        self.close_before(window)
        for pane in sorted((pane for pane in self._waiting if pane[0] <= window), key=lambda pane: (pane[1], pane[0])):
            partials = self._folded(self._waiting.pop(pane))
            if partials:
                partial = self._folder.together(partials)
                self._totals.enter(pane[1], partial)
                self._touched.append(partial)
        self._settle()
        keys = self._view.best(self._merits, self._totals.newest)
        return Top(window, self._rows(keys), self._merits[keys])

    def close_before(self, window: int) -> None:
        """Close all windows before this one. O(keys touched in the panes that go)."""
        self._open = window if self._open is None else max(self._open, window)
        self._touched += self._totals.leave(self._open)
        for pane in [pane for pane in self._waiting if pane[1] < self._open]:
            del self._waiting[pane]

    def held(self) -> Rows:
        """Return all keys that have a merit, of the window last asked for, best first. O(n log n)."""
        self._settle()
        merits = self._merits[: self._known]
        keys = np.flatnonzero(~np.isnan(merits))
        return self._rows(keys[ranking(merits[keys], self._totals.newest(keys), self._names(keys))])

    def inside(self) -> IntArray:
        """Return all keys with an event in the window last asked for, with a merit or without. O(keys)."""
        return np.flatnonzero(self._totals.alive(slice(0, self._known)))

    def newest(self, keys: IntArray) -> IntArray:
        """Return the newest times of keys with an event in the window last asked for."""
        return self._totals.newest(keys)

    def aggregates(self, keys: IntArray) -> Columnwise:
        """Return the aggregates of keys with an event in the window last asked for."""
        return self._totals.aggregates(keys)

    def merits(self, keys: IntArray) -> FloatArray:
        """Return the merits of some keys in the window last asked for."""
        self._settle()
        return self._merits[keys]

    def snapshot(self) -> bytes:
        """Return everything that is needed to go on from here. O(all that is held)."""
        partials = [({"inside": 1, "first": last, "last": last}, partial) for last, partial in self._totals.inside()]
        for (first, last), pane in self._waiting.items():
            pane.partials = self._folded(pane)
            partials += [({"inside": 0, "first": first, "last": last}, partial) for partial in pane.partials]
        settings = {
            "k": self.k,
            "aggregates": [each.value for each in self._aggregates],
            "rejected": self.rejected,
            "open": self._open,
            "known": self._known,
        }
        return pack(_KIND, _VERSION, State(settings, packed(partials)))

    @classmethod
    def restore(cls, snapshot: bytes, scoring: Scoring) -> Self:
        """Return a structure that goes on from a snapshot; raises ``SnapshotError`` for any other bytes.

        Merits are not kept: they are asked for again, with the remote's values as they are now.
        """
        try:
            state = unpack(_KIND, _VERSION, snapshot)
            restored = cls(state.settings["k"], state.settings["aggregates"], scoring)
            restored.rejected = state.settings["rejected"]
            restored._open = state.settings["open"]
            restored._know(state.settings["known"])
            for beside, partial in unpacked(state.tables):
                restored._put_back(beside, partial)
        except SnapshotError:
            raise
        except (KeyError, IndexError, TypeError, ValueError, OSError) as error:
            raise SnapshotError(f"the snapshot is damaged: {error}") from error
        return restored

    def __len__(self) -> int:
        """Return how many keys have a merit in the window last asked for."""
        self._settle()
        return int(np.count_nonzero(~np.isnan(self._merits[: self._known])))

    # How it works -----------------------------------------------------------------------------

    @abstractmethod
    def _bring_up_to_date(self, touched: Sequence[Partial | IntArray]) -> None:
        """Score what may have changed, and let it cross the view's bar."""

    def _settle(self) -> None:
        if self._touched:
            self._bring_up_to_date(self._touched)
            self._touched = []

    def _score_all(self) -> None:
        for start in range(0, self._known, _BLOCK):
            self._score_block(slice(start, min(start + _BLOCK, self._known)))
        self._view.scan(self._merits[: self._known], self._totals.newest)

    def _score_block(self, block: slice) -> None:
        keys, merits = self._all[block], self._merits[block]
        alive = self._totals.alive(block)
        dead = np.flatnonzero(~alive)
        if len(dead) * _FEW <= len(keys):
            # Scoring these few as well is cheaper than picking out all the others.
            aggregates = self._totals.aggregates(block)
            for column in aggregates:
                column[dead] = 0.0
            merits[:] = self._merits_of(keys, aggregates)
        else:
            living = keys[alive]
            merits[alive] = self._merits_of(living, self._totals.aggregates(living))
        merits[dead] = np.nan

    def _score_touched(self, touched: Sequence[Partial | IntArray]) -> None:
        each = [part.keys() if isinstance(part, Partial) else part for part in touched]
        keys = self._numbering.distinct(np.concatenate(each))
        self._score(keys)
        self._view.update(keys, self._merits, self._totals.newest)

    def _score(self, keys: IntArray) -> None:
        alive = self._totals.alive(keys)
        self._merits[keys[~alive]] = np.nan
        living = keys[alive]
        self._merits[living] = self._merits_of(living, self._totals.aggregates(living))

    def _merits_of(self, keys: IntArray, aggregates: Columnwise) -> FloatArray:
        merits = self._scoring.merits(keys, aggregates)
        for column in aggregates:
            if math.isnan(column.max(initial=-math.inf)):
                merits = np.where(np.isnan(column), np.nan, merits)
        return merits

    def _rows(self, keys: IntArray) -> Rows:
        return Rows(self._totals.newest(keys), keys, keys, self._totals.aggregates(keys))

    def _values(self, arrivals: Rows) -> tuple[Columnwise, IntArray]:
        columns = self._columns(len(arrivals), arrivals.parts)
        rejected: npt.NDArray[np.bool_] | None = None
        for column in columns:
            if math.isnan(column.max(initial=-math.inf)):
                rejected = np.isnan(column) if rejected is None else rejected | np.isnan(column)
        return columns, np.empty(0, dtype=np.int64) if rejected is None else np.flatnonzero(rejected)

    def _columns(self, length: int, parts: Columnwise) -> Columnwise:
        """Return each aggregate's values: none are needed to count."""
        return tuple(
            np.zeros(length) if aggregate is Aggregate.COUNT else np.asarray(parts[at], dtype=np.float64)
            for at, aggregate in enumerate(self._aggregates)
        )

    def _take_in(self, pane: _Pane, keys: IntArray, times: IntArray, values: Columnwise) -> None:
        self._know(int(keys.max()) + 1)
        if len(keys) < _FOLD_AT:
            # The caller may use its arrays again.
            keys, times, values = keys.copy(), times.copy(), tuple(column.copy() for column in values)
        pane.events.append((keys, times, values))
        pane.size += len(keys)
        if pane.size >= _FOLD_AT:
            pane.partials = self._folded(pane)

    def _folded(self, pane: _Pane) -> list[Partial]:
        if pane.events:
            pane.partials.append(self._folder.fold(*_together(pane.events), self._known))
            pane.events, pane.size = [], 0
        return pane.partials

    def _know(self, known: int) -> None:
        """Make place for all keys below a number, and some more."""
        self._known = max(self._known, known)
        if self._known <= len(self._merits):
            return
        size = max(self._known, 2 * len(self._merits))
        merits = np.full(size, np.nan)
        merits[: len(self._merits)] = self._merits
        self._merits = merits
        self._all = np.arange(size)
        self._totals.grow(size)
        self._numbering.grow(size)
        self._view.grow(size)

    def _put_back(self, beside: dict[str, int], partial: Partial) -> None:
        if beside["inside"]:
            self._totals.enter(beside["last"], partial)
            self._touched.append(partial)
        else:
            self._waiting.setdefault((beside["first"], beside["last"]), _Pane()).partials.append(partial)

    def _check(self) -> None:
        """Assert every invariant. O(all that is held)."""
        self._settle()
        known = self._known
        assert all(self._open is not None and last >= self._open for last, _ in self._totals.inside())
        assert all(self._open is None or last >= self._open for _, last in self._waiting)
        self._totals._check()
        keys = np.flatnonzero(self._totals.alive(slice(0, known)))
        merits = np.full(known, np.nan)
        merits[keys] = self._merits_of(keys, self._totals.aggregates(keys))
        assert np.array_equal(merits, self._merits[:known], equal_nan=True)
        self._view._check(self._merits[:known], self._totals.newest)


def _together(events: Sequence[tuple[IntArray, IntArray, Columnwise]]) -> tuple[IntArray, IntArray, Columnwise]:
    if len(events) == 1:
        return events[0]
    keys, times, values = zip(*events, strict=True)
    return np.concatenate(keys), np.concatenate(times), tuple(map(np.concatenate, zip(*values, strict=True)))


def _without(gone: np.ndarray[tuple[int], np.dtype[np.bool_]], partials: Sequence[Partial]) -> Iterator[Partial]:
    for partial in partials:
        listed = partial.listed()
        keys = listed.keys()
        kept = np.flatnonzero(~gone[keys])
        if len(kept):
            yield listed.only(kept, keys[kept])
