"""Dominance counting by pane: the Super-MTK+N list as arrays, updated a pane at a time.

A candidate is *dominated* by a better one that expires no earlier. A candidate with k+n dominators
is in no window's best k+n, now or later, and is dropped. Panes come in time order, so a new pane
outlives all candidates. Its best are merged in, and each candidate's count grows by the number of
new ones before it: one cumulative sum over the merged order. There are no marks on candidates, no
pointers, and no work per window or per event.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from acquatop.topk.columns import among, newest_of
from acquatop.topk.contract import (
    NO_ROWS,
    AnyArray,
    Certainty,
    FirstPart,
    FloatArray,
    IntArray,
    Rows,
    Scoring,
    Top,
)
from acquatop.topk.dominators import dominators
from acquatop.topk.dropped_bounds import (
    LOST,
    DroppedBounds,
    Rank,
    best_with,
    finite_or_any,
    rank_from,
)
from acquatop.topk.order import best, ranking
from acquatop.topk.pane_top import PaneTop, Scored, place
from acquatop.topk.row_pool import RowPool, columns_of
from acquatop.topk.snapshot import State, pack, reading, rows_of, table_of, unpack
from acquatop.topk.threshold_filter import ThresholdFilter

_BEFORE_ALL = -(2**63)
_KIND, _VERSION = "pane-dominance", 1


@dataclass
class _Candidates:
    """The candidates, best first: negative merit, last window, dominators, slot of the row."""

    minus: FloatArray
    lasts: IntArray
    counts: IntArray
    slots: IntArray

    @classmethod
    def none(cls) -> _Candidates:
        nothing = np.empty(0, np.int64)
        return cls(np.empty(0), nothing, nothing, nothing)

    def take(self, at: IntArray) -> _Candidates:
        return _Candidates(
            self.minus.take(at), self.lasts.take(at), self.counts.take(at), self.slots.take(at)
        )

    def where(self, mask: AnyArray) -> _Candidates:
        return self.take(mask.nonzero()[0])

    def with_(self, others: _Candidates) -> _Candidates:
        return _Candidates(
            np.concatenate((self.minus, others.minus)),
            np.concatenate((self.lasts, others.lasts)),
            np.concatenate((self.counts, others.counts)),
            np.concatenate((self.slots, others.slots)),
        )

    @property
    def nbytes(self) -> int:
        return self.minus.nbytes + self.lasts.nbytes + self.counts.nbytes + self.slots.nbytes

    def __len__(self) -> int:
        return len(self.minus)


class PaneDominance:
    """The best k of every open window, plus n more in case scores fall, in arrays.

    With ``distinct`` no identity ever comes twice, so a pane's arrivals can be dropped as they
    come. With ``fixed`` no merit ever changes either, so nothing is remembered of dropped arrivals.

    An arrival costs one comparison, unless it is among its pane's best so far. With L candidates, a
    pane that comes in time order costs O(L + (k+n) log L). A change of remote values costs O(L log
    L) for all keys together, plus a new count of dominators (:mod:`acquatop.topk.dominators`). L is
    at most (k+n) per open pane, and about (k+n)·H(width/slide) in random order, however many
    arrivals a window holds.
    """

    def __init__(
        self,
        k: int,
        n: int = 0,
        scoring: Scoring | None = None,
        *,
        distinct: bool = False,
        fixed: bool = False,
    ) -> None:
        if k < 1 or n < 0:
            raise ValueError("k must be at least 1 and n at least 0")
        if fixed and not distinct:
            raise ValueError("where identities come again, merits change: fixed needs distinct")
        self.k = k
        self.n = n
        self.rejected = 0
        self._scoring = scoring if scoring is not None else FirstPart()
        self._distinct = distinct
        self._fixed = fixed
        self._current = _BEFORE_ALL
        self._settled = _BEFORE_ALL
        self._newest = _BEFORE_ALL
        self._held = _Candidates.none()
        self._last = _BEFORE_ALL
        self._pool = RowPool()
        self._panes: dict[tuple[int, int], PaneTop] = {}
        self._lost = DroppedBounds()
        # Last windows of which some pane has joined with all its arrivals, or has got more since.
        self._partly_lost: set[int] = set()
        self._sieve = ThresholdFilter()
        self._guess = -math.inf

    # Arrivals -----------------------------------------------------------------------------------

    def add(
        self, first: int, last: int, arrivals: Rows, merits: FloatArray | None = None
    ) -> IntArray:
        """Add arrivals of windows ``first`` to ``last``; return the positions of the rejected.

        Give ``merits`` if they are computed already, with the present remote values.
        """
        if first > last or not len(arrivals):
            return np.empty(0, dtype=np.int64)
        if last < self._current:
            raise ValueError(
                f"the windows {first} to {last} are closed: the oldest that is open is "
                f"{self._current}"
            )
        if merits is None:
            merits = np.asarray(
                self._scoring.merits(arrivals.keys, arrivals.parts), dtype=np.float64
            )
        if first <= self._settled:
            return self._insert(last, merits, arrivals)
        pane = self._panes.get((first, last))
        if pane is None:
            pane = self._panes[first, last] = PaneTop(first, last, self._distinct)
        rejected = pane.add(merits, arrivals, self.k + self.n, self._sieve, self._guess)
        self.rejected += len(rejected)
        if not self._fixed:
            pane.widen(arrivals.parts)
        return rejected

    def note_pruned(
        self, first: int, last: int, lows: tuple[float, ...], highs: tuple[float, ...]
    ) -> None:
        """Note that only the best k + n of some arrivals of a pane were added.

        ``lows`` and ``highs`` are the ranges of the parts of all of them. Valid only if identities
        are distinct, and no window of the pane has been asked for.
        """
        pane = self._panes.setdefault((first, last), PaneTop(first, last, self._distinct))
        pane.has_let_go = True
        if not self._fixed:
            pane.widen_to(lows, highs)

    def note_lost(
        self,
        first: int,
        last: int,
        merit: float = math.inf,
        lows: tuple[float, ...] = (),
        highs: tuple[float, ...] = (),
        rank: Rank | None = None,
    ) -> None:
        """Note that windows have lost an arrival that never came here.

        It is worth ``merit`` at most for now. ``lows`` and ``highs`` are the ranges of its parts,
        needed if merits can change. ``rank`` is its exact place, if known.
        """
        if last >= self._current:
            self._lost.note(last, best_with(merit) if rank is None else rank)
            if lows:
                self._lost.widen(last, lows, highs)

    def settle(self, window: int) -> None:
        """Merge all panes of a window into the candidates, in time order: they are complete."""
        self._settled = max(self._settled, window)
        due = sorted(span for span in self._panes if span[0] <= window)
        for span in due:
            pane = self._panes.pop(span)
            if pane.size:
                self._join(pane)
            elif pane.floor is not None:
                self._note_lost_of(pane, pane.floor)

    def _join(self, pane: PaneTop) -> None:
        capacity = self.k + self.n
        if self._distinct:
            found = pane.best(capacity)
            lost = None if self._fixed else pane.lost(found, capacity)
            self._learn(found)
        else:
            merits, rows = pane.newest()
            counts = self._make_way(rows) & ~np.isnan(merits)
            merits, rows = merits[counts], rows.take(counts.nonzero()[0])
            order = best(capacity + 1, merits, rows.times, rows.identities)
            lost = place(Scored(merits, rows), int(order[-1])) if len(order) > capacity else None
            found = Scored(merits[order[:capacity]], rows.take(order[:capacity]))
        if lost is not None:
            self._note_lost_of(pane, lost)
        else:
            self._partly_lost.add(pane.last)
        if len(found) and int(found.rows.times.min()) > self._newest:
            self._merge(found, pane.last)
        elif len(found):
            self._place(found, pane.last)

    def _note_lost_of(self, pane: PaneTop, rank: Rank) -> None:
        if not self._fixed:
            self._lost.note(pane.last, rank)
            self._lost.widen(pane.last, pane.lows, pane.highs)

    def _learn(self, found: Scored) -> None:
        """Guess the last merit of the next pane's best: some places below this pane's last."""
        capacity = self.k + self.n
        self._guess = -math.inf
        if len(found) == capacity > 1:
            # The spacing of the last places estimates how far down some more of them would be.
            margin = 16 + 4 * math.sqrt(capacity)
            middle = float(found.merits[capacity // 2])
            step = (middle - float(found.merits[-1])) / max(1, capacity - capacity // 2 - 1)
            if math.isfinite(step):
                self._guess = float(found.merits[-1]) - margin * step

    def _merge(self, new: Scored, last: int) -> None:
        """Merge a pane's best into the candidates. They are newer, so they win ties in merit."""
        capacity = self.k + self.n
        added = self._added(new, last)
        is_rivalled = last <= self._last
        self._last = max(self._last, last)
        # Stable: new candidates stand before old ones of the same merit.
        both = added.with_(self._held)
        order = both.minus.argsort(kind="stable")
        is_new = order < len(added)
        ahead = is_new.cumsum()
        lasts, counts = both.lasts.take(order), both.counts.take(order)
        counts += ahead
        counts -= is_new
        if is_rivalled:
            # Of the old candidates, only those with a last window no earlier dominate new ones.
            counts += is_new * _rivals(is_new, lasts, last)
        is_open = lasts >= self._current
        is_dominated = counts >= capacity
        if not self._fixed:
            self._drop(both.take(order[is_dominated & is_open]))
        stays = (is_open & ~is_dominated).nonzero()[0]
        at = order.take(stays)
        self._held = _Candidates(
            both.minus.take(at), lasts.take(stays), counts.take(stays), both.slots.take(at)
        )
        self._compact()

    def _added(self, new: Scored, last: int) -> _Candidates:
        """Return arrivals as candidates without dominators."""
        size = len(new)
        start = self._pool.append(new.rows)
        self._newest = max(self._newest, int(new.rows.times.max()))
        lasts, counts = np.full(size, last), np.zeros(size, np.int64)
        return _Candidates(-new.merits, lasts, counts, np.arange(start, start + size))

    def _compact(self) -> None:
        """Drop the pool's rows that no candidate needs, once a third of the rows are such."""
        if self._pool.used > 1.5 * len(self._held):
            self._pool.keep(self._held.slots)
            self._held.slots = np.arange(len(self._held))

    def _insert(self, last: int, merits: FloatArray, arrivals: Rows) -> IntArray:
        """Add arrivals of a pane that has joined already, such as those that had no merit then."""
        rejected = np.flatnonzero(np.isnan(merits))
        self.rejected += len(rejected)
        at = np.arange(len(merits))
        if not self._distinct:
            at = newest_of(arrivals.identities, arrivals.times)
            at = at[self._make_way(arrivals.take(at))]
        at = at[~np.isnan(merits[at])]
        if len(at):
            if not self._lost.has_range_of(last, arrivals.parts):
                self._partly_lost.add(last)
            self._place(Scored(merits[at], arrivals.take(at)), last)
        return rejected

    def _make_way(self, arrivals: Rows) -> AnyArray:
        """Remove candidates that arrivals, one per identity, replace; return a mask of the visible.

        An arrival is visible if no newer candidate has its identity.
        """
        visible = np.ones(len(arrivals), dtype=bool)
        if self._distinct or not len(self._held) or not len(arrivals):
            return visible
        mine = self._pool.take(self._held.slots)
        if int(arrivals.times.min()) <= self._newest:
            held = dict(zip(mine.identities.tolist(), mine.times.tolist(), strict=True))
            pairs = zip(arrivals.identities.tolist(), arrivals.times.tolist(), strict=True)
            visible = np.array([time >= held.get(identity, time) for identity, time in pairs])
        replaced = among(mine.identities, arrivals.identities[visible])
        if replaced.any():
            self._recount(self._held.where(~replaced))
        return visible

    def _place(self, new: Scored, last: int) -> None:
        """Insert arrivals of any time at their places."""
        self._recount(self._held.with_(self._added(new, last)))
        self._compact()

    # Changes ------------------------------------------------------------------------------------

    def change(self, keys: AnyArray) -> Rows:
        """Rescore rows of keys whose remote values changed; return those now without a merit."""
        self._expire()
        elsewhere = self._perhaps_lost(keys)
        self._lost.raise_to_reach(self._scoring, elsewhere)
        for pane in self._panes.values():
            pane.let_go(self.k + self.n)
            if pane.has_let_go:
                pane.raise_floor(
                    finite_or_any(self._scoring.reach(pane.lows, pane.highs, elsewhere))
                )
        return self.rescore(keys)

    def rescore(self, keys: AnyArray) -> Rows:
        """Rescore like :meth:`change`, without raising the bounds on what was lost.

        For callers that add again any lost rows of these keys that may matter now.
        """
        self._refuse_if_fixed()
        self._expire()
        for pane in self._panes.values():
            pane.let_go(self.k + self.n)
        left = [pane.change(self._scoring, keys, self.k + self.n) for pane in self._panes.values()]
        left.append(self._rescore(keys))
        gone = [rows for rows in left if rows is not None]
        return Rows.together(gone) if gone else NO_ROWS

    def _rescore(self, keys: AnyArray) -> Rows | None:
        if not len(self._held):
            return None
        touched = np.flatnonzero(among(self._pool.keys(self._held.slots), keys))
        if not len(touched):
            return None
        rows = self._pool.take(self._held.slots[touched])
        merits = self._scoring.merits(rows.keys, rows.parts)
        self._held.minus[touched] = -merits
        gone = np.isnan(merits)
        self._recount(self._held.where(~np.isnan(self._held.minus)) if gone.any() else self._held)
        return rows.take(np.flatnonzero(gone)) if gone.any() else None

    def _perhaps_lost(self, keys: AnyArray) -> AnyArray:
        """Return the keys that may have lost rows: not those whose only solution is held."""
        if self._distinct or not len(self._held):
            return keys
        rows = self._pool.take(self._held.slots)
        its_own = rows.keys[rows.keys == rows.identities]
        return keys[~among(keys, its_own)]

    def remove(self, identities: AnyArray) -> None:
        """Remove rows that are no longer solutions."""
        self._refuse_if_fixed()
        for pane in self._panes.values():
            pane.remove(identities, self.k + self.n)
        older = (
            among(self._pool.identities(self._held.slots), identities)
            if len(self._held)
            else np.empty(0, bool)
        )
        if older.any():
            self._recount(self._held.where(~older))

    def resize(self, n: int) -> None:
        """Set the number of candidates held beyond k."""
        if n < 0:
            raise ValueError("n must be at least 0")
        for pane in self._panes.values():
            pane.fix_floor(self.k + self.n)
        self.n, smaller = n, n < self.n
        self._guess = -math.inf
        if smaller:
            self._expire()
            self._drop_dominated()

    def _refuse_if_fixed(self) -> None:
        if self._fixed:
            raise ValueError(
                "this structure was told that merits are fixed and identities do not come again"
            )

    def _recount(self, held: _Candidates) -> None:
        """Sort candidates, recount their dominators, and drop those with k+n of them."""
        self._held = held.take(self._ranking(held))
        self._held.counts = dominators(self._held.lasts, self.k + self.n)
        self._last = int(self._held.lasts.max(initial=self._last))
        self._drop_dominated()

    def _ranking(self, held: _Candidates) -> IntArray:
        """Return the positions of candidates, best first. Rows are read only if merits are tied."""
        order = held.minus.argsort()
        in_order = held.minus.take(order)
        if not (in_order[1:] == in_order[:-1]).any():
            return order
        rows = self._pool.take(held.slots)
        return ranking(-held.minus, rows.times, rows.identities)

    def _drop_dominated(self) -> None:
        is_dominated = self._held.counts >= self.k + self.n
        if is_dominated.any():
            self._drop(self._held.where(is_dominated))
            self._held = self._held.where(~is_dominated)

    def _drop(self, dropped: _Candidates) -> None:
        """Record candidates as lost."""
        if len(dropped) and not self._fixed:
            rows = self._pool.take(dropped.slots)
            self._lost.note_all(dropped.lasts, -dropped.minus, rows.times, rows.identities)
            # If a pane has lost some, the ranges of all its arrivals are noted already.
            fresh = [last for last in set(dropped.lasts.tolist()) if self._is_news(last)]
            if fresh:
                at = np.flatnonzero(np.isin(dropped.lasts, fresh))
                self._lost.widen_all(dropped.lasts[at], tuple(part[at] for part in rows.parts))

    def _is_news(self, last: int) -> bool:
        return last in self._partly_lost or last not in self._lost.ranges

    # Answers ------------------------------------------------------------------------------------

    def top(self, window: int) -> Top:
        """Return the best k of a complete window. Ask for windows oldest first."""
        if window < self._current:
            raise ValueError(
                f"window {window} is closed: the oldest that is open is {self._current}"
            )
        self.settle(window)
        rows, merits = self._covering(window, self.k)
        lost = self._lost.best(window)
        if lost is None or (len(rows) == self.k and place(Scored(merits, rows), -1) < lost):
            return Top(window, rows, merits)
        return Top(window, rows, merits, Certainty.APPROXIMATE, LOST, lost.merit)

    def lost(self, window: int) -> tuple[Rank, tuple[float, ...], tuple[float, ...]] | None:
        """Return the best place of a window's lost arrivals, and their parts' lows and highs.

        None if the window has lost nothing.
        """
        rank, parts = self._lost.best(window), self._lost.parts(window)
        return None if rank is None else (rank, *(parts or ((), ())))

    def close_before(self, window: int) -> None:
        """Close all windows before this one."""
        self._current = max(self._current, window)
        self._lost.close_before(self._current)
        self._partly_lost = {last for last in self._partly_lost if last >= window}
        for span in [span for span in self._panes if span[1] < window]:
            del self._panes[span]

    def held(self) -> Rows:
        """Return all rows held: candidates, best first, then those of panes not yet settled."""
        self._expire()
        waiting = [Rows.together(pane.rows) for pane in self._panes.values() if pane.size]
        listed = [self._pool.take(self._held.slots)] if len(self._held) else []
        return Rows.together([*listed, *waiting]) if listed or waiting else NO_ROWS

    def merit_at(self, place: int, first: int, last: int) -> float:
        """Return the merit at a place of what outlives a pane, or comes with it, so far.

        Minus infinity if that is less.
        """
        pane = self._panes.get((first, last))
        own = pane.merit_at(place) if pane is not None else -math.inf
        at = (self._held.lasts >= last).nonzero()[0][place - 1 : place]
        return max(own, -float(self._held.minus[at[0]])) if len(at) else own

    def holds_all(self, first: int, last: int) -> bool:
        """Return whether no arrival of a pane has been dropped, as it has not joined the others."""
        pane = self._panes.get((first, last))
        return pane is not None and not pane.has_let_go

    def covering(self, window: int) -> Rows:
        """Return the candidates that lie in a window that has been asked for, best first."""
        return self._covering(window, len(self._held))[0]

    def _covering(self, window: int, count: int) -> tuple[Rows, FloatArray]:
        if not len(self._held):
            return NO_ROWS, np.empty(0)
        at = (self._held.lasts >= window).nonzero()[0][:count]
        return self._pool.take(self._held.slots[at]), -self._held.minus[at]

    def __len__(self) -> int:
        self._expire()
        return len(self._held) + sum(pane.size for pane in self._panes.values())

    @property
    def nbytes(self) -> int:
        """Bytes of the columns held, without the objects that they refer to."""
        panes = (
            column
            for pane in self._panes.values()
            for rows in pane.rows
            for column in columns_of(rows)
        )
        return self._pool.nbytes + self._held.nbytes + sum(each.nbytes for each in panes)

    def _expire(self) -> None:
        expired = self._held.lasts < self._current
        if expired.any():
            self._held = self._held.where(~expired)

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        self._expire()
        settings: dict[str, Any] = {
            "k": self.k,
            "n": self.n,
            "rejected": self.rejected,
            "distinct": self._distinct,
            "fixed": self._fixed,
            "current": self._current,
            "settled": self._settled,
            "newest": self._newest,
            "guess": self._guess,
            "steps": [[last, list(rank)] for last, rank in self._lost.steps],
            "ranges": [
                [last, known.lows, known.highs] for last, known in self._lost.ranges.items()
            ],
            "panes": [
                [
                    pane.first,
                    pane.last,
                    pane.bar,
                    pane.has_let_go,
                    pane.floor,
                    pane.lows,
                    pane.highs,
                ]
                for pane in self._panes.values()
            ],
        }
        tables = {}
        if len(self._held):
            own = {
                "merits": -self._held.minus,
                "lasts": self._held.lasts,
                "counts": self._held.counts,
            }
            tables["held"] = {**own, **table_of(self._pool.take(self._held.slots))}
        for at, pane in enumerate(self._panes.values()):
            if pane.size:
                merits = {"merits": np.concatenate(pane.merits)}
                tables[f"pane{at}"] = {**merits, **table_of(Rows.together(pane.rows))}
        return pack(_KIND, _VERSION, State(settings, tables))

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added.

        Raise ``SnapshotError`` for any other bytes.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        with reading():
            settings = state.settings
            self.k, self.n = settings["k"], settings["n"]
            self._distinct, self._fixed = settings["distinct"], settings["fixed"]
            self.rejected = settings["rejected"]
            self._current, self._settled = settings["current"], settings["settled"]
            self._newest, self._guess = settings["newest"], settings["guess"]
            for last, rank in settings["steps"]:
                self._lost.note(last, rank_from(rank))
            for last, lows, highs in settings["ranges"]:
                self._lost.widen(last, tuple(lows), tuple(highs))
            for at, (first, last, bar, has_let_go, floor, lows, highs) in enumerate(
                settings["panes"]
            ):
                pane = PaneTop(first, last, self._distinct, bar=bar, has_let_go=has_let_go)
                pane.floor = None if floor is None else rank_from(floor)
                pane.lows, pane.highs = tuple(lows), tuple(highs)
                if f"pane{at}" in state.tables:
                    columns = state.tables[f"pane{at}"]
                    pane.merits, pane.rows, pane.size = (
                        [columns["merits"]],
                        [rows_of(columns)],
                        len(columns["merits"]),
                    )
                self._panes[first, last] = pane
            if "held" in state.tables:
                columns = state.tables["held"]
                self._pool.append(rows_of(columns))
                slots = np.arange(len(columns["merits"]))
                self._held = _Candidates(
                    -columns["merits"], columns["lasts"], columns["counts"], slots
                )
                self._last = int(columns["lasts"].max())
                self._partly_lost = set(columns["lasts"].tolist())

    def _check(self) -> None:
        """Assert every invariant. O(L²)."""
        self._lost._check()
        for (first, last), pane in self._panes.items():
            assert (pane.first, pane.last) == (first, last)
            assert self._settled < first or not pane.size
            assert pane.size == sum(map(len, pane.merits)) == sum(map(len, pane.rows))
        held = self._held
        if not len(held):
            return
        rows = self._pool.take(held.slots)
        assert not np.isnan(held.minus).any()
        assert ranking(-held.minus, rows.times, rows.identities).tolist() == list(range(len(held)))
        assert len(set(rows.identities.tolist())) == len(held), "an identity is held twice"
        assert len(set(held.slots.tolist())) == len(held), "two candidates share a row"
        assert (held.counts < self.k + self.n).all(), "a dominated candidate is held"
        for at, (last, count) in enumerate(
            zip(held.lasts.tolist(), held.counts.tolist(), strict=True)
        ):
            assert int((held.lasts[:at] >= last).sum()) <= count, (
                "a candidate is dominated by more than is counted"
            )


def _rivals(is_new: AnyArray, lasts: IntArray, last: int) -> IntArray:
    """Return how many old candidates up to each place have a last window no earlier."""
    return np.asarray((~is_new & (lasts >= last)).cumsum())
