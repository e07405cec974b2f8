"""Common base of MTopBand and MTopList: one view per opening moment, and its arrivals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from sortedcontainers import SortedDict

from acquatop.topk.contract import NO_ROWS, Rows, Scoring, Top
from acquatop.topk.pane_top import Scored
from acquatop.topk.papers.mintopk.candidate import Rank
from acquatop.topk.row_pool import RowPool
from acquatop.topk.shared.meta_query import DueWindow
from acquatop.topk.shared.periodic_times import BEFORE_ALL
from acquatop.topk.shared.shared_arrivals import SharedArrivals
from acquatop.topk.snapshot import State, pack, reading, rows_of, table_of, unpack

_ROOM = 65_536
_VERSION = 1


@dataclass(slots=True, eq=False)
class Entry:
    """A candidate: its place in the total order, its row, and the number of views it is in."""

    rank: Rank
    time: int
    slot: int
    views: int = 0


def rank_of(entry: Entry) -> Rank:
    """Return a candidate's place in the total order, the sort key of the lists."""
    return entry.rank


class PredictedViews(SharedArrivals, ABC):
    """The predicted top k of every view: of all arrivals after the opening of some window.

    A view begins with the first arrival after that moment, and ends when the last window that
    opened then has been answered. Its size is the largest k of the queries with such windows still
    to come: adaptive k. Rows are stored once, however many views they are in. Subclasses store the
    members.
    """

    def __init__(self, since: int, scoring: Scoring | None = None) -> None:
        super().__init__(since, scoring, _ROOM)
        self._pool = RowPool()
        self._entries: dict[int, Entry] = {}
        self._ks: SortedDict[int, int] = SortedDict()
        self._opened_until = BEFORE_ALL
        self._resumed: Scored | None = None
        """Candidates of a snapshot, until the queries have joined again."""

    # Queries --------------------------------------------------------------------------------------

    def leave(self, name: str) -> None:
        """Remove a query."""
        self.meta.leave(name)
        for opens in list(self._ks):
            self._fit(opens)

    def _insert_until(self, closes: int) -> None:
        taken = self._pending.take(closes)
        if taken is None:
            return
        self._open_before(int(taken.rows.times[0]), int(taken.rows.times[-1]))
        self._take_in(taken)
        self._compact()

    def _take_in(self, taken: Scored) -> None:
        """Add arrivals, in time order, to the views that have begun."""
        start = self._pool.append(taken.rows)
        times, identities = taken.rows.times.tolist(), taken.rows.identities.tolist()
        for at, (time, identity, merit) in enumerate(
            zip(times, identities, taken.merits.tolist(), strict=True)
        ):
            entry = Entry((-merit, -time, identity), time, start + at)
            self._insert(entry, self._ks.irange(maximum=time, inclusive=(True, False)))
            if entry.views:
                self._entries[entry.slot] = entry

    def _open_before(self, earliest: int, latest: int) -> None:
        """Begin the views that open before a time, for all windows still to be answered."""
        after = max(self._opened_until, earliest - self.meta.widest - 1)
        self._begin_between(after, latest - 1)
        self._opened_until = max(self._opened_until, latest - 1)

    def _begin_between(self, after: int, until: int) -> None:
        for opens in self.meta.openings(after, until).tolist():
            k = self.meta.k_of(opens)
            if k:
                self._ks[opens] = k
                self._open(opens)

    def _compact(self) -> None:
        """Drop the pool's rows that no candidate needs, once they are most of it."""
        if self._pool.used > 2 * len(self._entries) + 64:
            kept = list(self._entries.values())
            self._pool.keep(np.array([entry.slot for entry in kept], dtype=np.int64))
            for slot, entry in enumerate(kept):
                entry.slot = slot
            self._entries = dict(enumerate(kept))

    # Answers --------------------------------------------------------------------------------------

    def advance(self, until: int) -> Iterator[tuple[str, Top]]:
        """Advance time, and yield the answers of all windows that close by then."""
        self._fill_again()
        self.meta.go_on(until)
        while (closes := self.meta.next_close) is not None and closes <= until:
            # Insert before the closing windows are removed: their views must have begun.
            self._insert_until(closes)
            dues = self.meta.take(closes)
            for due in dues:
                if due in self.meta:
                    yield due.name, self._answer(due)
            for opens in {due.opens for due in dues if due.opens in self._ks}:
                self._fit(opens)
        self._end_skipped()

    def _end_skipped(self) -> None:
        """End the views of windows that are not answered."""
        starts, _ = self.meta.demand()
        if len(starts):
            for opens in list(self._ks.irange(maximum=int(starts[0]), inclusive=(True, False))):
                self._fit(opens)

    def _answer(self, due: DueWindow) -> Top:
        if due.opens not in self._ks:
            return Top(due.window, NO_ROWS, np.empty(0))
        members = list(self._best(due.opens, due.k))
        slots = np.array([entry.slot for entry in members], dtype=np.int64)
        return Top(
            due.window, self._pool.take(slots), np.array([-entry.rank[0] for entry in members])
        )

    def _fit(self, opens: int) -> None:
        """Shrink a view to the size still asked for."""
        k = self.meta.k_of(opens)
        if k < self._ks[opens]:
            self._shrink(opens, k)
            self._ks[opens] = k
        if not k:
            del self._ks[opens]

    def _let_go(self, entry: Entry) -> bool:
        """Note that a candidate has left a view; return true if that was its last."""
        entry.views -= 1
        if not entry.views:
            self._entries.pop(entry.slot, None)
        return not entry.views

    # Storage of members ---------------------------------------------------------------------------

    @abstractmethod
    def _open(self, opens: int) -> None:
        """Begin a view."""

    @abstractmethod
    def _insert(self, entry: Entry, views: Iterable[int]) -> None:
        """Add a candidate to those views whose top k it belongs to."""

    @abstractmethod
    def _shrink(self, opens: int, k: int) -> None:
        """Drop a view's members after the first k; drop the view if k is 0."""

    @abstractmethod
    def _best(self, opens: int, count: int) -> Iterable[Entry]:
        """Return a view's best, best first."""

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes, except for the queries: these join again.

        The views follow from the candidates: a view holds the best that came after its opening.
        """
        settings = {
            "rejected": self.rejected,
            "opened_until": self._opened_until,
            "meta": self.meta.state(),
        }
        entries = sorted(self._entries.values(), key=lambda entry: entry.time)
        held = self._resumed
        if entries:
            slots = np.array([entry.slot for entry in entries], dtype=np.int64)
            merits = np.array([-entry.rank[0] for entry in entries])
            held = Scored(merits, self._pool.take(slots))
        waiting = self._pending.waiting()
        tables = {
            name: {"merits": scored.merits, **table_of(scored.rows)}
            for name, scored in (("held", held), ("ahead", waiting))
            if scored is not None
        }
        return pack(type(self).__name__, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot, before any query joins; raise ``SnapshotError`` for other bytes."""
        state = unpack(type(self).__name__, _VERSION, snapshot)
        with reading():
            self.rejected = state.settings["rejected"]
            self._opened_until = state.settings["opened_until"]
            self.meta.resume(state.settings["meta"])
            found = {
                name: Scored(columns["merits"], rows_of(columns))
                for name, columns in state.tables.items()
            }
            self._resumed = found.get("held")
            if "ahead" in found:
                self._pending.append(found["ahead"].merits, found["ahead"].rows)

    def _fill_again(self) -> None:
        """Begin the views of a snapshot, for the queries that have joined again."""
        if self._resumed is None:
            return
        held, self._resumed = self._resumed, None
        self._begin_between(int(held.rows.times[0]) - self.meta.widest - 1, self._opened_until)
        self._take_in(held)

    # Rows held ------------------------------------------------------------------------------------

    def held(self) -> Rows:
        """Return all candidates, best first, without arrivals that no close has reached yet."""
        entries = sorted(self._entries.values(), key=rank_of)
        return (
            self._pool.take(np.array([entry.slot for entry in entries], dtype=np.int64))
            if entries
            else NO_ROWS
        )

    @property
    def references(self) -> int:
        """Number of views that the candidates are in, summed over candidates."""
        return sum(entry.views for entry in self._entries.values())

    def __len__(self) -> int:
        return len(self._entries) + len(self._pending)

    def _check(self) -> None:
        """Assert every invariant: a view's members are the first k held after its opening."""
        self.meta._check()
        self._pending._check()
        views: dict[int, int] = dict.fromkeys(self._entries, 0)
        for opens, k in self._ks.items():
            assert 0 < k == self.meta.k_of(opens)
            covering = sorted(
                (each for each in self._entries.values() if each.time > opens), key=rank_of
            )
            members = list(self._best(opens, k))
            assert members == covering[:k], "a view's members are not its best"
            for entry in members:
                views[entry.slot] += 1
        assert all(entry.views == views[slot] > 0 for slot, entry in self._entries.items())
        assert all(entry.slot == slot for slot, entry in self._entries.items())
