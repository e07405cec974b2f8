"""Content of the windows per key, kept exactly and independent of any ranking.

No pane can be pruned here: any key may still become the greatest sum. So every key's aggregate is
kept, exactly (:mod:`acquatop.topk.aggregates.exact_sums`). Several rankings may share one content:
each has a list of the keys touched since it last looked.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from acquatop.topk.aggregates.aggregate_totals import AggregateKind, Totals
from acquatop.topk.aggregates.multi_aggregate import Valuewise
from acquatop.topk.aggregates.partials import Accumulator, Numbering, Partial, packed, unpacked
from acquatop.topk.contract import AnyArray, IntArray, Rows
from acquatop.topk.snapshot import SnapshotError, State, pack, reading, unpack

_KIND, _VERSION = "aggregate", 2
FOLD_AT = 1 << 15
"""Number of events of a pane from which on they are folded to partial aggregates."""
_NO_KEY = 1 << 63


@dataclass
class _Pane:
    """Pane of no window entered so far: the last few events as they are, earlier ones folded."""

    events: list[tuple[IntArray, IntArray, Valuewise]] = field(default_factory=list)
    partials: list[Partial] = field(default_factory=list)
    size: int = 0


class KeyedContent:
    """Aggregates of all keys of the current window, and of the panes to come.

    Keys are small integers from zero. Memory is O(keys), and O(keys touched) for each pane; only a
    few events are kept.
    """

    def __init__(self, aggregates: AggregateKind | str | Sequence[AggregateKind | str]) -> None:
        several = [aggregates] if isinstance(aggregates, str) else aggregates
        self.aggregates = tuple(map(AggregateKind, several))
        self.totals = Totals(self.aggregates)
        self.numbering = Numbering()
        self.open: int | None = None
        self.known = 0
        """Exclusive upper bound of all keys."""
        self.rejected = 0
        self._size = 0
        self._folder = Accumulator(self.totals.folding, self.numbering)
        self._waiting: dict[tuple[int, int], _Pane] = {}
        self._watchers: list[list[Partial | IntArray]] = []

    def watch(self) -> list[Partial | IntArray]:
        """Return a list that collects all touched keys from now on.

        It starts with the present keys.
        """
        touched: list[Partial | IntArray] = [self.inside()] if self.known else []
        self._watchers.append(touched)
        return touched

    def unwatch(self, touched: list[Partial | IntArray]) -> None:
        """Stop adding to a list."""
        self._watchers = [each for each in self._watchers if each is not touched]

    # Arrivals -----------------------------------------------------------------------------------

    def add(self, first: int, last: int, arrivals: Rows) -> IntArray:
        """Add arrivals of windows ``first`` to ``last``; return the positions of the rejected.

        O(n). Arrivals of no window (``first`` after ``last``) are skipped.
        """
        self._refuse_closed(first, last)
        keys: IntArray = np.asarray(arrivals.keys, dtype=np.int64)
        # One comparison for both bounds: a negative number read as unsigned exceeds any key.
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

    def add_partial(self, first: int, last: int, partial: Partial) -> None:
        """Add the partial aggregates of some events of a pane, folded elsewhere. O(its keys)."""
        self._refuse_closed(first, last)
        if first <= last and len(partial.counts):
            self._know(int(partial.keys().max(initial=-1)) + 1)
            self._waiting.setdefault((first, last), _Pane()).partials.append(partial)

    def withdraw(
        self,
        lasts: IntArray,
        keys: IntArray,
        parts: Valuewise,
        left: Callable[[int, IntArray], Rows] | None,
    ) -> None:
        """Remove some events from the window last entered, grouped by their last windows.

        ``left`` returns the remaining events of some keys with a given last window. None states
        that each removed event has an equal one that is newer and stays longer. O(all partials with
        these last windows), and with ``left`` O(all that is held).
        """
        if not len(keys):
            return
        values = self._columns(len(keys), parts)
        order = np.argsort(lasts, kind="stable")
        each, starts = np.unique(lasts[order], return_index=True)
        for last, at in zip(each.tolist(), np.split(order, starts[1:]), strict=True):
            its = None if left is None else functools.partial(self._left, left, last)
            taken = self._folder.taken(keys[at], tuple(column[at] for column in values), its)
            self.totals.withdraw(last, taken, self._folder, afresh=left is not None)
            self._touch(taken)
        if left is not None:
            self.totals.look_up(self.numbering.distinct(keys))

    def remove(self, codes: IntArray) -> None:
        """Drop all events of some keys so far, also those of windows to come.

        O(all that is held).
        """
        gone = np.zeros(self.known, dtype=np.bool_)
        gone[codes] = True
        for pane in self._waiting.values():
            pane.partials = list(_without(gone, self._folded(pane)))
        inside = list(self.totals.inside())
        self.totals.rebuild(
            [(last, kept) for last, partial in inside for kept in _without(gone, [partial])]
        )
        self._touch(codes)

    # Time ---------------------------------------------------------------------------------------

    def enter(self, window: int) -> None:
        """Make a window the current one. Events that only earlier windows hold are dropped."""
        if self.open is not None and window < self.open:
            raise ValueError(f"window {window} has closed: the oldest that is open is {self.open}")
        self.close_before(window)
        for pane in sorted(
            (pane for pane in self._waiting if pane[0] <= window),
            key=lambda pane: (pane[1], pane[0]),
        ):
            partials = self._folded(self._waiting.pop(pane))
            if partials:
                partial = self._folder.together(partials)
                self.totals.enter(pane[1], partial)
                self._touch(partial)

    def close_before(self, window: int) -> None:
        """Close all windows before this one. O(keys touched in the panes that go)."""
        self.open = window if self.open is None else max(self.open, window)
        for gone in self.totals.leave(self.open):
            self._touch(gone)
        for pane in [pane for pane in self._waiting if pane[1] < self.open]:
            del self._waiting[pane]

    # Content ------------------------------------------------------------------------------------

    def inside(self) -> IntArray:
        """Return all keys with an event in the current window, ascending. O(keys) at first.

        The array is read-only.
        """
        return self.totals.keys()

    def count(self) -> int:
        """Return the number of keys with an event in the current window. O(keys) at first."""
        return len(self.totals.keys())

    def to_come(self) -> IntArray:
        """Return the keys of panes that no window entered so far holds, with repetitions.

        O(their number).
        """
        keys = [partial.keys() for pane in self._waiting.values() for partial in pane.partials]
        keys += [events[0] for pane in self._waiting.values() for events in pane.events]
        return np.concatenate([np.empty(0, dtype=np.int64), *keys])

    def distinct_known(self, keys: AnyArray) -> IntArray:
        """Return the given keys that have had an event, each once."""
        codes: IntArray = np.asarray(keys, dtype=np.int64)
        return self.numbering.distinct(codes[(codes >= 0) & (codes < self.known)])

    def rows(self, keys: IntArray) -> Rows:
        """Return keys with an event in the current window, with newest times and aggregates."""
        return Rows(self.totals.newest(keys), keys, keys, self.totals.aggregates(keys))

    def partials(self) -> Iterator[tuple[int, int, Partial]]:
        """Yield all partials, each with the first open window that holds it, and the last one."""
        for last, partial in self.totals.inside():
            assert self.open is not None, "a window has been entered"
            yield self.open, last, partial
        yield from self._to_come()

    def _to_come(self) -> Iterator[tuple[int, int, Partial]]:
        for (first, last), pane in self._waiting.items():
            pane.partials = self._folded(pane)
            for partial in pane.partials:
                yield first, last, partial

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes. O(all that is held)."""
        partials = [
            ({"inside": 1, "first": last, "last": last}, partial)
            for last, partial in self.totals.inside()
        ]
        partials += [
            ({"inside": 0, "first": first, "last": last}, partial)
            for first, last, partial in self._to_come()
        ]
        settings = {
            "aggregates": [each.value for each in self.aggregates],
            "rejected": self.rejected,
            "open": self.open,
            "known": self.known,
        }
        return pack(_KIND, _VERSION, State(settings, packed(partials)))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot of the same aggregates, before anything is added.

        Raise ``SnapshotError`` for any other bytes.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            if state.settings["aggregates"] != [each.value for each in self.aggregates]:
                raise SnapshotError("this is a snapshot of other aggregates")
            self.rejected = state.settings["rejected"]
            self.open = state.settings["open"]
            self._know(state.settings["known"])
            for beside, partial in unpacked(state.tables):
                self._put_back(beside, partial)

    # Internals ----------------------------------------------------------------------------------

    def _refuse_closed(self, first: int, last: int) -> None:
        if first <= last and self.open is not None and last < self.open:
            raise ValueError(
                f"windows {first} to {last} have closed: the oldest that is open is {self.open}"
            )

    def _touch(self, touched: Partial | IntArray) -> None:
        for each in self._watchers:
            each.append(touched)

    def _left(
        self, left: Callable[[int, IntArray], Rows], last: int, keys: IntArray
    ) -> tuple[IntArray, IntArray, Valuewise]:
        rows = left(last, keys)
        return rows.keys, rows.times, self._columns(len(rows), rows.parts)

    def _values(self, arrivals: Rows) -> tuple[Valuewise, IntArray]:
        columns = self._columns(len(arrivals), arrivals.parts)
        rejected: npt.NDArray[np.bool_] | None = None
        for column in columns:
            if column.dtype.kind == "f" and math.isnan(column.max(initial=-math.inf)):
                rejected = np.isnan(column) if rejected is None else rejected | np.isnan(column)
        return columns, np.empty(0, dtype=np.int64) if rejected is None else np.flatnonzero(
            rejected
        )

    def _columns(self, length: int, parts: Valuewise) -> Valuewise:
        """Return each aggregate's values: none are needed to count."""
        return tuple(
            np.zeros(length) if aggregate is AggregateKind.COUNT else np.asarray(parts[at])
            for at, aggregate in enumerate(self.aggregates)
        )

    def _take_in(self, pane: _Pane, keys: IntArray, times: IntArray, values: Valuewise) -> None:
        self._know(int(keys.max()) + 1)
        if len(keys) < FOLD_AT:
            # Copied: the caller may reuse its arrays.
            keys, times, values = (
                keys.copy(),
                times.copy(),
                tuple(column.copy() for column in values),
            )
        pane.events.append((keys, times, values))
        pane.size += len(keys)
        if pane.size >= FOLD_AT:
            pane.partials = self._folded(pane)

    def _folded(self, pane: _Pane) -> list[Partial]:
        if pane.events:
            pane.partials.append(self._folder.fold(*_together(pane.events), self.known))
            pane.events, pane.size = [], 0
        return pane.partials

    def _know(self, known: int) -> None:
        """Make room for all keys below a number, and some more."""
        self.known = max(self.known, known)
        if self.known > self._size:
            self._size = max(self.known, 2 * self._size)
            self.totals.grow(self._size)
            self.numbering.grow(self._size)

    def _put_back(self, beside: dict[str, int], partial: Partial) -> None:
        if beside["inside"]:
            self.totals.enter(beside["last"], partial)
        else:
            self._waiting.setdefault((beside["first"], beside["last"]), _Pane()).partials.append(
                partial
            )

    def _check(self) -> None:
        """Assert every invariant. O(all that is held)."""
        assert all(self.open is not None and last >= self.open for last, _ in self.totals.inside())
        assert all(self.open is None or last >= self.open for _, last in self._waiting)
        self.totals._check()


def _together(
    events: Sequence[tuple[IntArray, IntArray, Valuewise]],
) -> tuple[IntArray, IntArray, Valuewise]:
    if len(events) == 1:
        return events[0]
    keys, times, values = zip(*events, strict=True)
    return (
        np.concatenate(keys),
        np.concatenate(times),
        tuple(map(np.concatenate, zip(*values, strict=True))),
    )


def _without(
    gone: np.ndarray[tuple[int], np.dtype[np.bool_]], partials: Sequence[Partial]
) -> Iterator[Partial]:
    for partial in partials:
        listed = partial.listed()
        keys = listed.keys()
        kept = np.flatnonzero(~gone[keys])
        if len(kept):
            yield listed.only(kept, keys[kept])
