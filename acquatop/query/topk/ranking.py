"""Topk+N: candidates of every open window, kept as events arrive and remote values change."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.answer.expected_quality import ContentOfStream, ContentSample
from acquatop.answer.window_lists import WindowLists
from acquatop.ingest.panes import Pane
from acquatop.ingest.reduce.pane_best import PaneCandidates, PaneSummary
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.ingest.solution_columns import GONE, IDENTITY, KEY, number_column, term_column
from acquatop.ingest.unscored import Unscored, objects
from acquatop.query.contenders import Contenders, first_of
from acquatop.query.exactness import Exactness, Extents
from acquatop.query.pane_extents import PaneExtents
from acquatop.query.topk.first_values import FirstValues
from acquatop.query.window_lists import lists_of
from acquatop.refresh.proposers.contract import NOTHING_PROPOSED, Proposed
from acquatop.refresh.replica_refresh import Inquiry, Wanted
from acquatop.topk.candidate_list import CandidateList
from acquatop.topk.contract import FloatArray, IntArray, Rows, Top
from acquatop.topk.refill.refilled import Refilled
from acquatop.topk.retained import Retained
from acquatop.topk.snapshot import pack_parts, unpack_parts
from acquatop.windows import Windows
from connectors.mapping import TIME
from replica.store import JoinedStore
from replica.store.runs import Runs
from rspql.plan import TopKPlan

ListT = TypeVar("ListT", CandidateList, Refilled, Retained)


class TopKN(ABC, Generic[ListT]):
    """Candidates of one query, joined with a replica; without a store, the stream alone decides.

    There are three kinds: ``pruned`` drops solutions that may never matter, ``refilled`` brings
    them back from the windows' content, and ``retained`` drops none. If arrivals are
    ``distinct``, none replaces another. ``content`` is the rest of the windows' content, which
    other queries may read, too.

    Solutions whose key the replica does not know have no score yet: they wait outside the list
    until the remote has been asked for them. A solution for which the remote has nothing, or whose
    score cannot be computed, is no solution of the query. It still waits, as the remote may have
    something later.
    """

    def __init__(
        self,
        plan: TopKPlan,
        store: JoinedStore | None,
        windows: Windows,
        *,
        n: int,
        distinct: bool = False,
        content: ContentOfStream | None = None,
    ) -> None:
        self.scoring = ReplicaScoring(plan.score, store)
        self.k = plan.k + plan.offset
        self._distinct = distinct
        self._store = store
        is_constant = plan.join is not None and plan.join.is_constant
        self._may_get_values = store is not None and not is_constant
        """True if a solution without a score may have one later."""
        self.list: ListT = self._new_list(n)
        self.waiting = Unscored()
        self._numbers = plan.score.stream_variables
        self._terms = plan.stream_variables
        self._windows = windows
        self._content = content
        self._open_from = -(2**63)
        self._extents = PaneExtents(self._numbers, Exactness(plan.score, store))
        self._first_values = FirstValues(store)

    # Arrivals -----------------------------------------------------------------------------------

    def add_pane(self, pane: Pane) -> None:
        """Add one pane's solutions; only those that could matter become candidates."""
        if pane.last < self._open_from:
            return
        self._first_values.note(pane.last)
        gone = pane.solutions.column(GONE)
        self._remove(pane.solutions.filter(gone).column(IDENTITY).to_pylist())
        solutions = pane.solutions.filter(pc.invert(gone))
        if not len(solutions):
            return
        parts = tuple(solutions.column(number_column(name)).to_numpy() for name in self._numbers)
        self._extents.note(pane.first, pane.last, parts)
        self._add(pane, solutions, parts)

    @abstractmethod
    def _new_list(self, n: int) -> ListT:
        """Return an empty list of candidates, ``n`` beyond k."""

    @abstractmethod
    def _add(self, pane: Pane, solutions: pa.Table, parts: tuple[FloatArray, ...]) -> None:
        """Add the solutions of a pane that are not gone; ``parts`` are their numbers."""

    @abstractmethod
    def _note_pruned(self, first: int, last: int, summary: PaneSummary) -> None:
        """Note that a reducer dropped solutions of the windows ``first`` to ``last``."""

    def add_best(self, pane: PaneCandidates) -> None:
        """Add the solutions that a reducer kept of a pane, if arrivals are distinct."""
        if pane.last < self._open_from:
            return
        self._first_values.note(pane.last)
        summary = pane.summary
        self._extents.note_ranges(pane.first, pane.last, summary.lows, summary.highs)
        if summary.let_go:
            self._note_pruned(pane.first, pane.last, summary)
        if summary.shed and self._store is not None:
            self.list.note_lost(pane.first, pane.last, np.inf, summary.lows, summary.highs)
        self._let_wait(pane.candidates.take(self.list.add(pane.first, pane.last, pane.candidates)))

    def note_late(self, first: int, last: int) -> None:
        """Note a late solution of the windows ``first`` to ``last``: those still open lack it.

        It may have been a solution there, or have replaced one, so nothing is certain in them.
        """
        anything = (np.inf,) * len(self._numbers)
        nothing = tuple(-each for each in anything)
        self.list.note_lost(first, last, np.inf, nothing, anything)

    def _remove(self, identities: list[str]) -> None:
        if identities and not self._distinct:
            self.list.remove(objects(identities))
            self.waiting.remove(identities)

    def _rows(self, solutions: pa.Table, parts: tuple[FloatArray, ...], at: IntArray) -> Rows:
        rows = solutions.take(pa.array(at))
        identities, keys, *terms = (
            objects(rows.column(name).to_pylist())
            for name in (IDENTITY, KEY, *map(term_column, self._terms))
        )
        return Rows(
            times_of(rows), identities, keys, tuple(part[at] for part in parts), tuple(terms)
        )

    def _take(self, arrivals: Rows, rejected: IntArray) -> None:
        """Let arrivals that the list has rejected wait for a value."""
        self.waiting.remove(arrivals.identities.tolist())
        self._let_wait(arrivals.take(rejected))

    def _let_wait(self, rows: Rows) -> None:
        shed = self.waiting.put(rows, *self._windows.spans(rows.times))
        if not len(shed) or not self._may_get_values:
            return
        spans = zip(shed.firsts.tolist(), shed.lasts.tolist(), strict=True)
        each = zip(spans, shed.numbers(), self._known(shed.rows).tolist(), strict=True)
        for (first, last), numbers, is_known in each:
            # What is known to have no score has none until its key changes; then its numbers tell
            # how good it can be.
            merit = -np.inf if is_known and numbers else np.inf
            self.list.note_lost(first, last, merit, numbers, numbers)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return the whole state. O(all that is held)."""
        parts = {
            "numbers": f"{self._open_from} {self.scoring.scored}".encode(),
            "list": self.list.snapshot(),
            "waiting": self.waiting.snapshot(),
            "extents": self._extents.snapshot(),
            "first values": self._first_values.snapshot(),
        }
        return pack_parts(parts)

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot of the same query."""
        parts = unpack_parts(snapshot)
        self._open_from, self.scoring.scored = map(int, parts["numbers"].split())
        self.list.resume(parts["list"])
        self.waiting.resume(parts["waiting"])
        self._extents.resume(parts.get("extents", b"[]"))
        self._first_values.resume(parts.get("first values"))

    # Changes of the remote's values ---------------------------------------------------------------

    def apply_changes(self, keys: Iterable[str], first: frozenset[str]) -> None:
        """Rescore solutions of keys whose remote values have changed.

        Admit those that have a score now. ``first`` are the keys that were unknown until now.
        """
        changed = set(keys)
        never_known = self._first_values.among(first, self._open_from)
        if not changed:
            return
        woken = self.waiting.take(changed)
        # If a key has only one solution, and that has waited, none with the key has been dropped.
        are_single = woken.rows.keys == woken.rows.identities
        elsewhere = changed.difference(woken.rows.keys[are_single].tolist(), never_known)
        self._let_wait(self.list.change(objects(sorted(elsewhere))))
        for span, rows in woken.by_span().items():
            self._let_wait(rows.take(self.list.add(*span, rows)))

    # Input of an answer ---------------------------------------------------------------------------

    def settle(self, window: int) -> None:
        """Note that all panes of a window have come."""
        self.list.settle(window)

    def top(self, window: int) -> Top:
        """Return a window's best, and whether others that are not held could be among them."""
        return self.list.top(window)

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best, as bound by the window's pattern."""
        return dict(zip(self._terms, (column[at] for column in rows.carried), strict=True))

    @property
    def keeps_terms(self) -> bool:
        """True: rows have all their terms."""
        return True

    def ratios(self, rows: Rows, at: int) -> Mapping[str, Fraction]:
        """Return nothing: terms are as they came."""
        return {}

    def wanted(self, window: int, inquiry: Inquiry) -> Wanted:
        """Return the candidates' keys of all windows: waiting and held.

        No others can be results.
        """
        assert self._store is not None
        rows = self.waiting.all.rows
        if len(rows):
            expected = self.scoring.expected(rows.parts, len(rows))
            rows = rows.take(np.argsort(-expected, kind="stable"))
        known = self._known(rows)
        unknown, absent = rows.keys[~known].tolist(), rows.keys[known].tolist()
        is_due = self._store.fetched_at(self._store.rows(absent)) <= inquiry.absent_before
        absent = [absent[at] for at in np.flatnonzero(is_due).tolist()]
        return Wanted(unknown, self._proposed(), absent)

    def _proposed(self) -> Proposed:
        """Return the keys of all held rows, each at its best place."""
        held = self.list.held()
        _, at = np.unique(held.keys, return_index=True)
        at.sort()
        if not len(at):
            return NOTHING_PROPOSED
        rows = held.take(at)
        _, lasts = self._windows.spans(rows.times)
        return Proposed(
            tuple(rows.keys.tolist()), self.scoring.merits(rows.keys, rows.parts), lasts, rows.parts
        )

    def lists(self, score_of: Callable[[float], float]) -> Iterator[WindowLists]:
        """Yield the K-list and the N-list of each window that is open, by the values known now."""
        held = self.list.held()
        if len(held):
            scored = self.scoring.scored
            merits = self.scoring.merits(held.keys, held.parts)
            # What a list costs is counted in rows that it scores: these are not its own.
            self.scoring.scored = scored
            sizes = self.k, self.list.n
            yield from lists_of(
                held, merits, self._windows, self._open_from, sizes, score_of, self.terms
            )

    def needed(self) -> Iterable[str]:
        """Return the keys of all rows that are held, wait, or may be brought back."""
        return {*self._kept_keys(), *self.waiting.all.rows.keys.tolist()}

    @abstractmethod
    def _kept_keys(self) -> Iterable[str]:
        """Return the keys of all rows that are held or may be brought back."""

    def merits_in(self, rows: Rows, runs: Runs) -> FloatArray:
        """Return the merits of all that some of the best join, given their places."""
        return self.scoring.merits_in(runs, rows.parts)

    def content(self, window: int) -> ContentSample:
        """Return a window's content: held and waiting solutions, and a sample of dropped ones."""
        assert self._content is not None
        return self._content.of(window, self.list.covering(window), self.waiting.of(window).rows)

    def extents(self, window: int) -> Extents:
        """Return the sizes of the stream's numbers in a window, by variable."""
        return self._extents.of(window)

    def unscored(self, window: int) -> int:
        """Return the number of a window's solutions without a score."""
        return self.waiting.count(window)

    def contenders(self, window: int, most: int) -> Contenders:
        """Return the best solutions held, and some that wait for a score."""
        held = self.list.covering(window)
        firsts, lasts = self._windows.spans(held.times)
        held = held.take(np.flatnonzero((firsts <= window) & (lasts >= window)))
        # What a list costs is counted in rows that it scores: these are not its own.
        scored = self.scoring.scored
        merits = self.scoring.merits(held.keys, held.parts) if len(held) else np.empty(0)
        self.scoring.scored = scored
        return self._with_waiting(window, held, merits, most, is_whole=False)

    def _with_waiting(
        self, window: int, held: Rows, merits: FloatArray, most: int, *, is_whole: bool
    ) -> Contenders:
        waiting = self.waiting.of(window).rows
        if len(waiting):
            held = Rows.together([held, waiting]) if len(held) else waiting
            merits = np.concatenate([merits, np.full(len(waiting), np.nan)])
        return first_of(held, merits, held.parts, most, is_whole=is_whole)

    def without_value(self, window: int, bar: float) -> FloatArray:
        """Return the possible merits of solutions without a value, if they reach the bar."""
        waiting = self.waiting.of(window)
        unknown = waiting.take(~self._known(waiting.rows)).numbers()
        reach = {numbers: self.scoring.reach(numbers, numbers) for numbers in set(unknown)}
        return np.array([reach[numbers] for numbers in unknown if reach[numbers] >= bar])

    def stale_can_reach(self, window: int, bar: float, fetched: frozenset[str]) -> bool:
        """Return True if a solution whose key was not fetched just now could reach the bar.

        It may be held or not.
        """
        lost = self.list.lost(window)
        if lost is not None and self.scoring.reach(*lost[1:]) >= bar:
            return True
        held = self.list.covering(window)
        stale = np.array([key not in fetched for key in held.keys.tolist()], dtype=bool)
        columns = [part[stale].tolist() for part in held.parts]
        numbers = set(zip(*columns, strict=True)) if columns else {()} if stale.any() else set()
        waiting = self.waiting.of(window)
        each = zip(waiting.rows.keys.tolist(), waiting.numbers(), strict=True)
        numbers |= {several for key, several in each if key not in fetched}
        return any(self.scoring.reach(each, each) >= bar for each in numbers)

    def _known(self, rows: Rows) -> BoolArray:
        """Return True for each row whose key the replica knows."""
        assert self._store is not None
        known: BoolArray = self._store.rows(rows.keys.tolist()) >= 0
        return known

    def close_before(self, window: int) -> None:
        """Release data that lies only in earlier windows."""
        self._open_from = max(self._open_from, window)
        self.list.close_before(window)
        self.waiting.close_before(window)
        self._extents.close_before(window)


def times_of(solutions: pa.Table) -> npt.NDArray[np.int64]:
    """Return the times of solutions."""
    return np.asarray(solutions.column(TIME).to_numpy())
