"""The Super-MTK+N list: the candidates that can still reach an answer, for all open windows.

For every open window the best K+N candidates are its *members* (its MTK+N list: the best K are its
K-list, the rest its N-list). All windows' members are in one list, best first; a candidate that is
a member of no window is dropped. Dropped candidates are summarised per window by one rank (the
best) and one range per part. These tell if a dropped candidate could belong to an answer.

Panes wait, unpruned, until the first of their windows is asked for. Only then is it certain that
nothing older can come, so a newer arrival always replaces the older. From then on everything in the
list lies in the oldest open window, and the windows of which a candidate is a member are a range up
to its last: a candidate that outranks it either outlives it or leaves before. Therefore two window
marks are enough, and one pass, best first, finds them all (:meth:`SuperMTKN._sift`). This pass
replaces the lower bound pointers: it stays right if scores change, if a newer arrival replaces an
older one, and if windows do not overlap evenly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from sortedcontainers import SortedKeyList

from acquatop.topk.contract import (
    AnyArray,
    Certainty,
    FirstPart,
    FloatArray,
    IntArray,
    Rows,
    Scoring,
    Top,
)
from acquatop.topk.dropped_bounds import LOST, Rank
from acquatop.topk.order import best
from acquatop.topk.pane_top import Scored, place
from acquatop.topk.papers.mintopk.candidate import (
    NOTHING,
    Candidate,
    Dropped,
    Layout,
    best_rank,
    parts_range,
    rank_of,
)
from acquatop.topk.snapshot import State, pack, unpack

_BEFORE_ALL = -(2**63)
_KIND, _VERSION = "super-mtkn", 2
_ROOM = 64
"""Number of arrivals of a pane that may wait beside twice the best K+N, before they are dropped."""

Pane = tuple[int, int]
"""First and last window that hold the pane."""


class SuperMTKN:
    """Candidates for the top k of every open window, with N more in case scores fall.

    With L candidates held, W open windows and B arrivals in P panes since the last answer, an
    answer takes O((L+B)·log(L+B) + W·(K+N+P)), and so does a change of remote values. L is at most
    W·(K+N), and about (K+N)·H(width/slide) for arrivals in random order, however many events a
    window holds. Of the arrivals since the last answer the newest of each identity are all held;
    with ``distinct``, for identities that never come again, only the best K+N of each pane. With
    ``fixed`` no merit ever changes either, so nothing is remembered of dropped candidates.

    >>> held = SuperMTKN(k=1, n=1)
    >>> rejected = held.add(
    ...     0,
    ...     1,
    ...     Rows(np.array([3, 4, 5]), np.array([*"abc"]), np.array([*"abc"]), (np.arange(3.0),)),
    ... )
    >>> (
    ...     held.top(0).rows.identities.tolist(),
    ...     held.top(0).certainty.value,
    ...     held.held().identities.tolist(),
    ... )
    (['c'], 'exact', ['c', 'b'])
    """

    def __init__(
        self,
        k: int,
        n: int,
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
        self._scoring = scoring or FirstPart()
        self._distinct = distinct
        self._fixed = fixed
        self._layout = NOTHING
        self._identities_are_keys = True
        self._current = _BEFORE_ALL
        self._list: SortedKeyList[Candidate] = SortedKeyList(key=rank_of)
        self._by_identity: dict[Any, Candidate] = {}
        self._panes: dict[Pane, dict[Any, Candidate]] = {}
        self._dropped: dict[int, Dropped] = {}
        self._pruned: dict[Pane, tuple[tuple[float, ...], tuple[float, ...]]] = {}
        """Ranges of the parts of arrivals that come next, of which only the best K+N are added."""

    # Arrivals -----------------------------------------------------------------------------------

    def add(
        self, first: int, last: int, arrivals: Rows, merits: FloatArray | None = None
    ) -> IntArray:
        """Add arrivals of windows ``first`` to ``last``; return the positions of the rejected.

        O(1) each. Arrivals of no window (``first`` after ``last``) are ignored. An arrival that was
        returned without a merit, and has one now, may be added again if it is still the newest of
        its identity. Give ``merits`` if they are computed already, with the present remote values.
        """
        if first > last or not len(arrivals):
            return np.empty(0, dtype=np.int64)
        if last < self._current:
            raise ValueError(
                f"the windows {first} to {last} are closed: the oldest that is open is "
                f"{self._current}"
            )
        self._layout = self._layout.widened(arrivals)
        self._identities_are_keys &= np.array_equal(arrivals.identities, arrivals.keys)
        if merits is None:
            merits = self._scoring.merits(arrivals.keys, arrivals.parts)
        self._forget_pruned((first, last), arrivals, merits)
        pane = self._panes.setdefault((first, last), {})
        for candidate in self._layout.candidates(arrivals, merits, first, last):
            _replace(pane, candidate)
        rejected = np.flatnonzero(np.isnan(merits))
        self.rejected += len(rejected)
        if len(pane) > 2 * (self.k + self.n) + _ROOM:
            self._prune([pane])
        return rejected

    def remove(self, identities: AnyArray) -> None:
        """Remove rows that are no longer solutions. O(L) for all together."""
        for identity in identities.tolist():
            for pane in self._panes.values():
                pane.pop(identity, None)
            if identity in self._by_identity:
                self._take_out(self._by_identity[identity])
        self._sift()

    def note_pruned(
        self, first: int, last: int, lows: tuple[float, ...], highs: tuple[float, ...]
    ) -> None:
        """Note that the arrivals added next are only the best K+N of more of their pane.

        ``lows`` and ``highs`` are the ranges of the parts of all of them.
        """
        if not self._fixed:
            self._pruned[first, last] = (lows, highs)

    def _forget_pruned(self, pane: Pane, arrivals: Rows, merits: FloatArray) -> None:
        """Note what was pruned beside arrivals: it ranks after the last of their K+N."""
        if pane not in self._pruned:
            return
        lows, highs = self._pruned.pop(pane)
        at = np.flatnonzero(~np.isnan(merits))
        scored = Scored(merits[at], arrivals.take(at))
        order = best(self.k + self.n, scored.merits, scored.rows.times, scored.rows.identities)
        is_full = len(order) == self.k + self.n
        after = place(scored, int(order[-1]), after=1) if is_full else best_rank(math.inf)
        self._note(range(max(pane[0], self._current), pane[1] + 1), after, lows, highs)

    def note_lost(
        self,
        first: int,
        last: int,
        merit: float = math.inf,
        lows: tuple[float, ...] | None = None,
        highs: tuple[float, ...] | None = None,
        rank: tuple[Any, ...] | None = None,
    ) -> None:
        """Note that these windows have lost arrivals that never came here, none above ``merit``.

        ``lows`` and ``highs`` are the ranges of their parts, and ``rank`` is the best of their
        ranks, if known. A caller that gives a finite merit, or a rank, guarantees that the lost
        arrivals would have replaced nothing.
        """
        best = best_rank(merit) if rank is None else rank
        self._note(range(max(first, self._current), last + 1), best, lows, highs)

    # Changes ------------------------------------------------------------------------------------

    def change(self, keys: AnyArray) -> Rows:
        """Rescore rows of keys whose remote values changed; return those now without a merit.

        They are no longer held. Of dropped candidates only the ranges of parts are known: they
        count as the best that these make possible with the new values.
        """
        changed = set(keys.tolist())
        # What is dropped is dropped by the values before.
        self._prune(self._panes.values())
        self._raise_dropped(keys)
        touched = [
            each for each in self._all() if each.key in changed and not math.isnan(each.merit)
        ]
        if touched:
            self._rescore(touched)
        return self._layout.rows(each for each in touched if math.isnan(each.merit))

    def _rescore(self, candidates: list[Candidate]) -> None:
        rows = self._layout.rows(candidates)
        listed = [each for each in candidates if self._by_identity.get(each.identity) is each]
        for candidate in listed:
            self._take_out(candidate)
        for candidate, merit in zip(
            candidates, self._scoring.merits(rows.keys, rows.parts).tolist(), strict=True
        ):
            candidate.set_merit(merit)
        for candidate in listed:
            if not math.isnan(candidate.merit):
                self._put_in(candidate)
        self._sift()
        self._prune(self._panes.values())

    def resize(self, n: int) -> None:
        """Set the number of candidates held beyond k; the surplus is recorded as dropped."""
        if n < 0:
            raise ValueError("n must be at least 0")
        self.n = n
        self._sift()
        self._prune(self._panes.values())

    # Answers ------------------------------------------------------------------------------------

    def top(self, window: int) -> Top:
        """Return the best k of a complete window. Ask for windows oldest first."""
        if window < self._current:
            raise ValueError(
                f"window {window} is closed: the oldest that is open is {self._current}"
            )
        self.settle(window)
        return self.predicted(window)

    def predicted(self, window: int) -> Top:
        """Return the best k of a window if nothing else were to arrive or change."""
        best = self._best(window, self.k)
        rows, merits = (
            self._layout.rows(best),
            np.array([each.merit for each in best], dtype=np.float64),
        )
        dropped = self._dropped.get(window)
        if dropped is None or (len(best) == self.k and best[-1].rank < dropped.best):
            return Top(window, rows, merits)
        return Top(window, rows, merits, Certainty.APPROXIMATE, LOST, -dropped.best[0])

    def lost(self, window: int) -> tuple[Rank, tuple[float, ...], tuple[float, ...]] | None:
        """Return the best place of a window's lost arrivals, and their parts' lows and highs.

        None if the window has lost nothing.
        """
        dropped = self._dropped.get(window)
        if dropped is None:
            return None
        anything = (math.inf,) * len(self._layout.empty.parts)
        lows = tuple(-each for each in anything) if dropped.lows is None else dropped.lows
        return Rank(*dropped.best), lows, anything if dropped.highs is None else dropped.highs

    def covering(self, window: int) -> Rows:
        """Return the candidates that lie in a window that has been asked for, best first."""
        return self._layout.rows(each for each in self._list if each.covers(window))

    def lists(self, window: int) -> tuple[Rows, Rows]:
        """Return a window's present K-list and N-list."""
        best = self._best(window, self.k + self.n)
        return self._layout.rows(best[: self.k]), self._layout.rows(best[self.k :])

    def close_before(self, window: int) -> None:
        """Close all windows before this one.

        Their members expire unless a later window needs them.
        """
        if window <= self._current:
            return
        self._current = window
        for closed in [index for index in self._dropped if index < window]:
            del self._dropped[closed]
        for span in [span for span in self._panes if span[1] < window]:
            del self._panes[span]
        for candidate in [each for each in self._list if each.last < window]:
            self._take_out(candidate)
        self._sift()

    def held(self) -> Rows:
        """Return all rows held: candidates, best first, then those of panes not yet settled."""
        return self._layout.rows(each for each in self._all() if not math.isnan(each.merit))

    def __len__(self) -> int:
        return len(self._list) + sum(map(len, self._panes.values()))

    # Internals ----------------------------------------------------------------------------------

    def _all(self) -> Iterator[Candidate]:
        """Yield the list's candidates, then those of the waiting panes."""
        yield from self._list
        for pane in self._panes.values():
            yield from pane.values()

    def _best(self, window: int, count: int) -> list[Candidate]:
        newest: dict[Any, Candidate] = {}
        for candidate in self._all():
            if candidate.covers(window):
                _replace(newest, candidate)
        return sorted(
            (each for each in newest.values() if not math.isnan(each.merit)), key=rank_of
        )[:count]

    def _prune(self, panes: Iterable[dict[Any, Candidate]]) -> None:
        """Keep the best K+N of each pane, if no arrival replaces another.

        All arrivals of a pane enter and leave every window together.
        """
        for pane in panes if self._distinct else ():
            scored = sorted(
                (each for each in pane.values() if not math.isnan(each.merit)), key=rank_of
            )
            self._forget(scored[self.k + self.n :])
            pane.clear()
            pane.update((each.identity, each) for each in scored[: self.k + self.n])

    def settle(self, window: int) -> None:
        """Move the panes of a window, and of those before it, into the list: they are complete."""
        ready = sorted(span for span in self._panes if span[0] <= window)
        newest: dict[Any, Candidate] = {}
        for span in ready:
            for arrival in self._panes.pop(span).values():
                _replace(newest, arrival)
        for identity, arrival in newest.items():
            held = self._by_identity.get(identity)
            if held is not None and held.time > arrival.time:
                continue
            if held is not None:
                self._take_out(held)
            if not math.isnan(arrival.merit):
                self._put_in(arrival)
        if ready:
            self._sift()

    def _sift(self) -> None:
        """Recompute all window marks; drop candidates that are members of no window.

        Every listed candidate lies in all open windows up to its last, so windows fill up oldest
        first.
        """
        members: defaultdict[int, int] = defaultdict(int)
        start = max([self._current, *(each.first for each in self._list)])
        for candidate in self._list:
            candidate.start = start
            for window in range(start, candidate.last + 1):
                members[window] += 1
            while members[start] == self.k + self.n:
                start += 1
        in_none = [each for each in self._list if each.start > each.last]
        for candidate in in_none:
            self._take_out(candidate)
        self._forget(in_none)

    def _raise_dropped(self, keys: AnyArray) -> None:
        for window, dropped in self._dropped.items():
            perhaps = self._perhaps_dropped(window, keys)
            if not len(perhaps):
                continue
            if dropped.lows is None or dropped.highs is None:
                dropped.best = best_rank(math.inf)
                continue
            reach = self._scoring.reach(dropped.lows, dropped.highs, perhaps)
            dropped.best = min(dropped.best, best_rank(math.inf if math.isnan(reach) else reach))

    def _perhaps_dropped(self, window: int, keys: AnyArray) -> AnyArray:
        """Return the keys of which a window may have dropped a row.

        If identities are keys, a key's newest arrival has replaced all others, so nothing of the
        key can be missing in windows that hold it.
        """
        if not self._identities_are_keys:
            return keys
        at_hand = {each.key for each in self._all() if each.covers(window)}
        return keys[[key not in at_hand for key in keys.tolist()]]

    def _forget(self, candidates: Iterable[Candidate]) -> None:
        """Record candidates as dropped, grouped by pane. O(1) each, and O(W) for each pane."""
        if self._fixed:
            return
        panes: dict[Pane, Dropped] = {}
        for each in candidates:
            parts = parts_range(each)
            pane = panes.setdefault((each.first, each.last), Dropped(each.rank, parts, parts))
            pane.add(each.rank, parts, parts)
        for (first, last), pane in panes.items():
            self._note(range(max(first, self._current), last + 1), pane.best, pane.lows, pane.highs)

    def _note(
        self,
        windows: Iterable[int],
        best: tuple[Any, ...],
        lows: tuple[float, ...] | None,
        highs: tuple[float, ...] | None,
    ) -> None:
        for window in windows:
            if window in self._dropped:
                self._dropped[window].add(best, lows, highs)
            else:
                self._dropped[window] = Dropped(best, lows, highs)

    def _put_in(self, candidate: Candidate) -> None:
        self._list.add(candidate)
        self._by_identity[candidate.identity] = candidate

    def _take_out(self, candidate: Candidate) -> None:
        self._list.remove(candidate)
        del self._by_identity[candidate.identity]

    # Snapshots ----------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the complete state as bytes."""
        settings = {
            "k": self.k,
            "n": self.n,
            "distinct": self._distinct,
            "fixed": self._fixed,
            "rejected": self.rejected,
            "identities_are_keys": self._identities_are_keys,
            "current": self._current,
            "layout": self._layout.settings(),
            "dropped": [
                [window, each.best, each.lows, each.highs] for window, each in self._dropped.items()
            ],
        }
        waiting = (each for span in sorted(self._panes) for each in self._panes[span].values())
        return pack(
            _KIND,
            _VERSION,
            State(
                settings,
                {"list": self._layout.table(self._list), "panes": self._layout.table(waiting)},
            ),
        )

    def resume(self, snapshot: bytes) -> None:
        """Continue from a snapshot, before anything is added.

        Raise ``SnapshotError`` for any other bytes.
        """
        state = unpack(_KIND, _VERSION, snapshot)
        settings = state.settings
        self.k, self.n, self._distinct = settings["k"], settings["n"], settings["distinct"]
        self._fixed = settings["fixed"]
        self.rejected = settings["rejected"]
        self._identities_are_keys = settings["identities_are_keys"]
        self._current = settings["current"]
        self._layout = Layout.of_settings(settings["layout"])
        for window, place_of, lows, highs in settings["dropped"]:
            rank = tuple(tuple(each) if isinstance(each, list) else each for each in place_of)
            self._dropped[window] = Dropped(rank, _tuple(lows), _tuple(highs))
        for candidate in self._layout.of_table(state.tables["list"]):
            self._put_in(candidate)
        for candidate in self._layout.of_table(state.tables["panes"]):
            pane = self._panes.setdefault((candidate.first, candidate.last), {})
            pane[candidate.identity] = candidate

    def _check(self) -> None:
        """Assert every invariant. O(L·W)."""
        self._list._check()
        assert self._by_identity == {each.identity: each for each in self._list}
        assert len(self._by_identity) == len(self._list)
        assert all(window >= self._current for window in self._dropped)
        assert not any(math.isnan(each.merit) for each in self._list)
        oldest = max([self._current, *(each.first for each in self._list)])
        for at, candidate in enumerate(self._list):
            assert oldest <= candidate.start <= candidate.last, "a candidate is held for no window"
            for window in range(oldest, candidate.last + 1):
                is_member = sum(each.covers(window) for each in self._list[:at]) < self.k + self.n
                assert is_member == (candidate.start <= window), "a window mark is wrong"
        for (first, last), pane in self._panes.items():
            assert first <= last >= self._current
            assert all(pane[name].identity == name for name in pane)
            assert not self._distinct or len(pane) <= 2 * (self.k + self.n) + _ROOM


def _replace(newest: dict[Any, Candidate], arrival: Candidate) -> None:
    """Put an arrival among the newest of each identity, unless it is older."""
    older = newest.get(arrival.identity)
    if older is None or arrival.time >= older.time:
        newest[arrival.identity] = arrival


def _tuple(values: list[float] | None) -> tuple[float, ...] | None:
    return None if values is None else tuple(values)
