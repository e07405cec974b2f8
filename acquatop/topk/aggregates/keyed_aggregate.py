"""Top k of keys by an aggregate of their events in the window: the part common to all rankings.

The windows' content is kept exactly (:mod:`acquatop.topk.aggregates.keyed_content`), so every
answer is exact for the values given. In addition only merits are kept;
:class:`~acquatop.topk.aggregates.aggregate_view.BarView` finds the best among them.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import numpy as np

from acquatop.topk.aggregates.aggregate_totals import AggregateKind
from acquatop.topk.aggregates.aggregate_view import BarView
from acquatop.topk.aggregates.keyed_content import KeyedContent
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.aggregates.partials import Partial
from acquatop.topk.contract import AnyArray, FloatArray, IntArray, Rows, Scoring, Top
from acquatop.topk.order import ranking

_BLOCK = 1 << 14
"""Keys scored at a time, so that intermediate results stay in the processor's cache."""
FEW = 64
"""Keys of a block for each dead one, from which on the dead are scored with the others."""


class KeyedAggregate(ABC):
    """The contract of :mod:`acquatop.topk.contract` for aggregates per key.

    Keys are small integers from zero, and are the identities. ``parts`` hold a value for each
    aggregate (anything for COUNT); in returned rows they hold the aggregates. Returned times are
    those of each key's newest event in the window. A key without an event in the window is no
    candidate. A key with merit NaN is none until its merit changes. A window may be asked for
    again, after changes, until a later one has been.

    If keys are numbers that stand for something else, ``names`` maps them to the names by which
    they are ordered; a key without events may be given another name. ``content`` is a content
    shared with other rankings.

    Memory is O(keys), and O(keys touched) for each pane; only a few events are kept.
    """

    def __init__(
        self,
        k: int,
        aggregates: AggregateKind | str | Sequence[AggregateKind | str],
        scoring: Scoring,
        names: Callable[[IntArray], AnyArray] = lambda keys: keys,
        content: KeyedContent | None = None,
    ) -> None:
        if k < 1:
            raise ValueError("k must be at least 1")
        self.k = k
        self._content = KeyedContent(aggregates) if content is None else content
        self._totals = self._content.totals
        self._scoring = scoring
        self._merits: FloatArray = np.empty(0)
        self._all = np.arange(0)
        self._names = names
        self._view = BarView(k, names)
        self._touched = self._content.watch()
        self._unranked: IntArray | None = None
        self._top: Top | None = None
        """The best of a window, as they are until something is touched."""

    @property
    def rejected(self) -> int:
        """Number of arrivals without a value."""
        return self._content.rejected

    def add(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Add arrivals of windows ``first`` to ``last``; return the positions of the rejected.

        O(n). Arrivals of no window (``first`` after ``last``) are skipped.
        """
        return self._content.add(first, last, arrivals)

    def change(self, keys: AnyArray) -> Rows:
        """Rescore keys, and return those in the window that have no merit now, by key.

        O(m). They remain known: their aggregates continue, and another change may give them a
        merit.
        """
        self._grow()
        codes = self._content.distinct_known(keys)
        if not len(codes):
            return self._content.rows(codes)
        self._touched.append(codes)
        self._unranked = None
        self._score(codes)
        lost = codes[self._totals.alive(codes) & np.isnan(self._merits[codes])]
        return self._content.rows(np.sort(lost))

    def withdraw(
        self,
        lasts: IntArray,
        keys: IntArray,
        parts: Columnwise,
        left: Callable[[int, IntArray], Rows] | None,
    ) -> None:
        """Remove some events from the window last asked for: see :meth:`KeyedContent.withdraw`."""
        self._content.withdraw(lasts, keys, parts, left)

    def remove(self, identities: AnyArray) -> None:
        """Drop all events of some keys so far, also those of windows to come.

        O(all that is held).
        """
        codes = self._content.distinct_known(identities)
        if len(codes):
            self._content.remove(codes)

    def top(self, window: int) -> Top:
        """Return the best k of a window. Events that only earlier windows hold are then dropped."""
        self._content.enter(window)
        self._settle()
        if self._top is None or self._top.window != window:
            keys = self._view.best(self._merits, self._totals.newest)
            self._top = Top(window, self._content.rows(keys), self._merits[keys])
        return self._top

    def close_before(self, window: int) -> None:
        """Close all windows before this one. O(keys touched in the panes that go)."""
        self._content.close_before(window)

    def held(self) -> Rows:
        """Return all keys with a merit, of the window last asked for, best first. O(n log n)."""
        self._settle()
        merits = self._merits[: self._content.known]
        keys = np.flatnonzero(~np.isnan(merits))
        return self._content.rows(
            keys[ranking(merits[keys], self._totals.newest(keys), self._names(keys))]
        )

    def inside(self) -> IntArray:
        """Return all keys with an event in the window last asked for, ascending.

        The array is read-only.
        """
        return self._content.inside()

    def without_merit(self) -> IntArray:
        """Return those keys of :meth:`inside` that have no merit. O(keys) after a change.

        The array is read-only.
        """
        self._settle()
        if self._unranked is None:
            keys = self.inside()
            self._unranked = keys[np.isnan(self._merits[keys])]
            self._unranked.flags.writeable = False
        return self._unranked

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

    def leave(self) -> None:
        """Stop watching the content; other rankings may go on."""
        self._content.unwatch(self._touched)

    def snapshot(self) -> bytes:
        """Return the complete state as bytes. O(all that is held)."""
        return self._content.snapshot()

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added.

        Raise ``SnapshotError`` for any other bytes. Merits are not stored: they are computed again,
        with the present remote values.
        """
        self._content.resume(snapshot)
        self._touched.append(self._content.inside())

    def __len__(self) -> int:
        """Return the number of keys with a merit in the window last asked for."""
        self._settle()
        return int(np.count_nonzero(~np.isnan(self._merits[: self._content.known])))

    # Internals --------------------------------------------------------------------------------

    @abstractmethod
    def _bring_up_to_date(self, touched: Sequence[Partial | IntArray]) -> None:
        """Score the keys that may have changed, and let them cross the view's bar."""

    def _settle(self) -> None:
        self._grow()
        if self._touched:
            self._bring_up_to_date(self._touched)
            self._touched.clear()
            self._unranked = self._top = None

    def _grow(self) -> None:
        """Make room for the keys known by now, and some more."""
        known = self._content.known
        if known <= len(self._merits):
            return
        size = max(known, 2 * len(self._merits))
        merits = np.full(size, np.nan)
        merits[: len(self._merits)] = self._merits
        self._merits = merits
        self._all = np.arange(size)
        self._view.grow(size)

    def _score_all(self) -> None:
        known = self._content.known
        for start in range(0, known, _BLOCK):
            self._score_block(slice(start, min(start + _BLOCK, known)))
        self._view.scan(self._merits[:known], self._totals.newest)

    def _score_block(self, block: slice) -> None:
        keys, merits = self._all[block], self._merits[block]
        alive = self._totals.alive(block)
        dead = np.flatnonzero(~alive)
        if len(dead) * FEW <= len(keys):
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
        keys = self._content.numbering.distinct(np.concatenate(each))
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

    def _check(self) -> None:
        """Assert every invariant. O(all that is held)."""
        self._settle()
        self._content._check()
        known, keys = self._content.known, self.inside()
        merits = np.full(known, np.nan)
        merits[keys] = self._merits_of(keys, self._totals.aggregates(keys))
        assert np.array_equal(merits, self._merits[:known], equal_nan=True)
        self._view._check(self._merits[:known], self._totals.newest)
