"""Shared skyline: one list of candidates for all queries, cut at all boundaries, in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from acquatop.topk.contract import NO_ROWS, FloatArray, IntArray, Rows, Scoring, Top
from acquatop.topk.order import ranking
from acquatop.topk.pane_top import Scored
from acquatop.topk.row_pool import RowPool
from acquatop.topk.shared.meta_query import DueWindow
from acquatop.topk.shared.periodic_times import BEFORE_ALL
from acquatop.topk.shared.shared_arrivals import SharedArrivals
from acquatop.topk.shared.skyline import bar_of, first_after, undominated, youngest_best
from acquatop.topk.snapshot import State, pack, reading, rows_of, table_of, unpack

_KIND, _VERSION = "shared skyline", 1
_OVERFULL = 1.5
"""Growth factor of the list at which dominated candidates are removed."""


@dataclass
class _Ranked:
    """Candidates, best first: negative merit, time, last opening before it, slot of the row.

    The rows are kept apart and stay in place.
    """

    minus: FloatArray
    times: IntArray
    labels: IntArray
    slots: IntArray

    @classmethod
    def none(cls) -> _Ranked:
        nothing = np.empty(0, np.int64)
        return cls(np.empty(0), nothing, nothing, nothing)

    def take(self, at: IntArray) -> _Ranked:
        return _Ranked(
            self.minus.take(at), self.times.take(at), self.labels.take(at), self.slots.take(at)
        )

    def merged(self, older: _Ranked) -> _Ranked:
        """Return these and older candidates, best first."""
        minus = np.concatenate((self.minus, older.minus))
        # Stable: newer candidates stand before older ones of the same merit.
        order = minus.argsort(kind="stable")
        return _Ranked(
            minus.take(order),
            np.concatenate((self.times, older.times)).take(order),
            np.concatenate((self.labels, older.labels)).take(order),
            np.concatenate((self.slots, older.slots)).take(order),
        )

    @property
    def nbytes(self) -> int:
        return self.minus.nbytes + self.times.nbytes + self.labels.nbytes + self.slots.nbytes

    def __len__(self) -> int:
        return len(self.minus)


class SharedSkyline(SharedArrivals):
    """The answers of many queries from one list: each is the first k entries young enough.

    A candidate is kept if fewer than k better ones outlive it; k is the largest of any query that
    can still see it. Arrivals are merged in stretches of ``stretch``, many closes at a time. The
    current stretch stands beside the list, best first, and only the part of it that could be in an
    answer is read. Before the next close at most twice ``room`` arrivals wait, or twice k per pane
    if that is more.

    With L candidates an arrival costs some comparisons, and a share of O(L) for every stretch, or
    for every close if closes are further apart. An answer costs O(k·w) if the widest window is w
    times as wide as its own. L is at most k for every moment at which a window opens, and about
    k·(1 + ln(width/k)) in random order, whatever the number of queries. At most half as many again
    are held.

    >>> from acquatop.topk.shared.contract import TopKRequest
    >>> from acquatop.windows import Windows
    >>> held = SharedSkyline(since=0)
    >>> (
    ...     held.join("wide", TopKRequest(Windows(6, 3, 0), 2)),
    ...     held.join("narrow", TopKRequest(Windows(2, 2, 0), 1)),
    ... )
    (0, 0)
    >>> at = np.arange(1, 7)
    >>> _ = held.add(Rows(at, at, at, (np.array([5.0, 1.0, 2.0, 4.0, 3.0, 0.0]),)))
    >>> [(name, top.window, top.merits.tolist()) for name, top in held.advance(6)]
    [('narrow', 0, [5.0]), ('narrow', 1, [4.0]), ('wide', 0, [5.0, 4.0]), ('narrow', 2, [3.0])]
    """

    def __init__(
        self,
        since: int,
        scoring: Scoring | None = None,
        *,
        stretch: int = 16_384,
        room: int = 65_536,
    ) -> None:
        super().__init__(since, scoring, room)
        self._stretch = stretch
        self._held = _Ranked.none()
        self._pool = RowPool()
        self._needed = 0
        """Number of candidates left after the last removal of dominated ones."""

    # Queries --------------------------------------------------------------------------------------

    def leave(self, name: str) -> None:
        """Remove a query."""
        self.meta.leave(name)
        self._needed = 0

    # Answers --------------------------------------------------------------------------------------

    def advance(self, until: int) -> Iterator[tuple[str, Top]]:
        """Advance time, and yield the answers of all windows that close by then."""
        self.meta.go_on(until)
        while (closes := self.meta.next_close) is not None and closes <= until:
            yield from self._go_through(
                self.meta.take(min(until, max(closes, self._end_of_stretch(until))))
            )

    def _end_of_stretch(self, until: int) -> int:
        time = self._pending.time_of(max(self._stretch, 4 * self.meta.most))
        return until if time is None else time - 1

    def _go_through(self, dues: list[DueWindow]) -> Iterator[tuple[str, Top]]:
        """Answer due windows with the arrivals up to the last close, and merge these."""
        taken = self._pending.take(dues[-1].closes)
        fresh = self._fresh(taken, dues) if taken is not None else _Ranked.none()
        for due in dues:
            if due in self.meta:
                yield due.name, self._answer(due, fresh)
        self._merge(fresh)

    def _fresh(self, taken: Scored, dues: list[DueWindow]) -> _Ranked:
        """Return the new arrivals that can be in an answer that is due or in a later one."""
        labels = self.meta.labels(taken.rows.times)
        chosen = np.zeros(len(taken), dtype=bool)
        chosen[youngest_best(taken, labels, max(1, self.meta.most))] = True
        # Held candidates that lie in all due windows set a bar.
        opens, k = max(due.opens for due in dues), max(due.k for due in dues)
        chosen |= taken.merits >= -bar_of(self._held.minus, self._held.times, opens, k)
        chosen &= labels > BEFORE_ALL
        at = chosen.nonzero()[0]
        rows, merits = taken.rows.take(at), taken.merits[at]
        order = ranking(merits, rows.times, rows.identities)
        slots = self._pool.append(rows) + order if len(at) else at
        return _Ranked(-merits[order], rows.times[order], labels[at][order], slots)

    def _merge(self, fresh: _Ranked) -> None:
        merged = fresh.merged(self._held)
        if len(merged) > _OVERFULL * self._needed:
            merged = merged.take(undominated(merged.labels, *self.meta.demand()))
            self._needed = len(merged)
        self._held = merged
        if self._pool.used > 1.5 * len(self._held):
            self._pool.keep(self._held.slots)
            self._held.slots = np.arange(len(self._held))

    def _answer(self, due: DueWindow, fresh: _Ranked) -> Top:
        held, width = self._held, due.closes - due.opens
        at = first_after(held.times, due.opens, due.k, width / max(width, self.meta.widest))
        minus, slots = held.minus[at], held.slots[at]
        bar = minus[-1] if len(at) == due.k else np.inf
        near = int(fresh.minus.searchsorted(bar, side="right"))
        if near:
            times = fresh.times[:near]
            new = ((times > due.opens) & (times <= due.closes)).nonzero()[0]
            minus = np.concatenate((fresh.minus[new], minus))
            order = minus.argsort(kind="stable")[: due.k]
            minus, slots = minus[order], np.concatenate((fresh.slots[new], slots))[order]
        return Top(due.window, self._pool.take(slots) if len(slots) else NO_ROWS, -minus)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes, except for the queries: these join again."""
        settings = {"rejected": self.rejected, "needed": self._needed, "meta": self.meta.state()}
        tables = {}
        if len(self._held):
            own = {"merits": -self._held.minus, "labels": self._held.labels}
            tables["held"] = {**own, **table_of(self._pool.take(self._held.slots))}
        waiting = self._pending.waiting()
        if waiting is not None:
            tables["ahead"] = {"merits": waiting.merits, **table_of(waiting.rows)}
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot, before any query joins; raise ``SnapshotError`` for other bytes."""
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            self.rejected, self._needed = state.settings["rejected"], state.settings["needed"]
            self.meta.resume(state.settings["meta"])
            if "held" in state.tables:
                columns = state.tables["held"]
                rows = rows_of(columns)
                slots = self._pool.append(rows) + np.arange(len(rows))
                self._held = _Ranked(-columns["merits"], rows.times, columns["labels"], slots)
            if "ahead" in state.tables:
                columns = state.tables["ahead"]
                self._pending.append(columns["merits"], rows_of(columns))

    # Rows held ------------------------------------------------------------------------------------

    def held(self) -> Rows:
        """Return all candidates, best first, without arrivals that no close has reached yet."""
        return self._pool.take(self._held.slots) if len(self._held) else NO_ROWS

    def __len__(self) -> int:
        return len(self._held) + len(self._pending)

    @property
    def nbytes(self) -> int:
        """Bytes of the columns held, without the objects that they refer to."""
        return self._pool.nbytes + self._held.nbytes + self._pending.nbytes

    def _check(self) -> None:
        """Assert every invariant."""
        self.meta._check()
        self._pending._check()
        held = self._held
        assert (
            len({len(column) for column in (held.minus, held.times, held.labels, held.slots)}) == 1
        )
        assert not np.isnan(held.minus).any()
        assert (held.labels < held.times).all(), "a candidate came before its last window opened"
        assert len(set(held.slots.tolist())) == len(held), "two candidates share a row"
        if len(held):
            rows = self._pool.take(held.slots)
            assert rows.times.tolist() == held.times.tolist()
            assert ranking(-held.minus, rows.times, rows.identities).tolist() == list(
                range(len(held))
            )
            assert int(held.times.max()) <= self.meta.now, "what no close has reached is held"
