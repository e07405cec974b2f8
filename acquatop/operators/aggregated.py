"""Aggregates per key, kept up to date as solutions come, go, and are replaced."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.operators.aggregate_columns import AggregateColumns
from acquatop.operators.contract import Wanted
from acquatop.operators.expectation import CONSIDERED, STANDING_FOR_OTHERS, Content
from acquatop.operators.key_codes import KeyCodes
from acquatop.operators.match import GONE, IDENTITY, KEY, number_column
from acquatop.operators.panes import Pane
from acquatop.operators.proposers.contract import Proposed
from acquatop.operators.retained import Identities, Retained, Solutions
from acquatop.operators.scoring import BoolArray, ReplicaScoring
from acquatop.topk.aggregates.partials import NEVER
from acquatop.topk.aggregates.side_by_side import Columnwise
from acquatop.topk.aggregates.windowed_aggregate import WindowedAggregate
from acquatop.topk.contract import AnyArray, Certainty, FloatArray, IntArray, Rows, Top
from acquatop.topk.order import best
from acquatop.windows import Windows
from connectors.mapping import TIME
from replica.store import ReplicaStore
from rspql.plan import TopKPlan

_UNKNOWN = -1
_SLACK = 1024


@dataclass(frozen=True)
class _Arrivals:
    """Solutions that have come and are not counted yet; what only replaces an older one has no key."""

    identities: Identities
    firsts: IntArray
    solutions: Solutions

    def take(self, at: IntArray | BoolArray) -> _Arrivals:
        return _Arrivals(self.identities.take(at), self.firsts[at], self.solutions.take(at))


class _Merits:
    """Merits of keys, given by their numbers, with what is kept of each, and the rows that the replica has them in."""

    def __init__(self, scoring: ReplicaScoring, columns: AggregateColumns, names: tuple[str, ...]) -> None:
        self.rows: IntArray = np.empty(0, dtype=np.int64)
        self._scoring = scoring
        self._columns = columns
        self._names = names

    def parts(self, kept: Columnwise) -> tuple[FloatArray, ...]:
        """Return what the score needs of the query's aggregates."""
        return tuple(self._columns.numbers(name, kept) for name in self._names)

    def merits(self, keys: AnyArray, parts: Columnwise) -> FloatArray:
        """Return each key's merit with the remote's present values; NaN where there is none."""
        return self._scoring.merits_at(self.rows[keys], self.parts(parts))

    def reach(self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None) -> float:
        """Return infinity: nothing is let go, so nobody asks."""
        return math.inf

    def grow(self, size: int) -> None:
        """Make place for more keys."""
        self.rows = np.concatenate([self.rows, np.full(size - len(self.rows), _UNKNOWN)])


class Aggregated:
    """The aggregates of all keys of one query, joined with a replica; without a store the stream alone decides.

    Nothing is ever let go: what makes an answer uncertain are keys that the replica knows nothing of,
    and solutions that came too late. A solution is counted once in a window: one of the same identity
    takes the place of an older one, which is taken out of its key's aggregates.

    Memory is O(solutions of the open windows), for their identities (:mod:`acquatop.operators.retained`),
    and O(keys with a solution in an open window): their numbers are used again.
    """

    def __init__(
        self,
        plan: TopKPlan,
        store: ReplicaStore | None,
        windows: Windows,
        *,
        n: int,
        latest_only: bool,
        datatypes: Mapping[str, str | None],
    ) -> None:
        assert plan.aggregate is not None
        self.k = plan.k + plan.offset
        self.scoring = ReplicaScoring(plan.score, store)
        self._key = plan.aggregate.key
        self._store = store
        self._windows = windows
        self._latest_only = latest_only
        self._columns = AggregateColumns(plan.aggregate.columns, datatypes)
        self._merits = _Merits(self.scoring, self._columns, plan.score.stream_variables)
        self._codes = KeyCodes()
        self.list = WindowedAggregate(self.k + n, self._columns.aggregates, self._merits, names=self._codes.texts)
        self._retained = Retained(len(self._columns.variables))
        self._arrived: list[_Arrivals] = []
        self._open_from = -(2**63)
        self._uncertain_until = -(2**63)

    # Arrivals -----------------------------------------------------------------------------------

    def add_pane(self, pane: Pane) -> None:
        """Take in one pane's solutions. O(n)."""
        if pane.last < self._open_from:
            return
        solutions, count = pane.solutions, len(pane.solutions)
        here = np.flatnonzero(~solutions.column(GONE).to_numpy())
        keys = np.full(count, _UNKNOWN)
        keys[here] = self._encode(solutions.column(KEY).take(pa.array(here)))
        self._arrived.append(
            _Arrivals(
                Identities.of(solutions.column(IDENTITY).to_pylist()),
                np.full(count, pane.first),
                Solutions(
                    np.full(count, pane.last),
                    keys,
                    np.asarray(solutions.column(TIME).to_numpy()),
                    tuple(np.asarray(solutions.column(number_column(of)).to_numpy()) for of in self._columns.variables),
                ),
            )
        )

    def note_late(self, late: pa.Table) -> None:
        """Note what came after a window of its own had closed: it is left out of the windows still open, too."""
        firsts, lasts = self._windows.spans(np.asarray(late.column(TIME).to_numpy()))
        self._uncertain_until = max([self._uncertain_until, *lasts[firsts <= lasts].tolist()])

    def settle(self, window: int) -> None:
        """Count all that has come, each identity once, in the newest of its panes."""
        self.list.close_before(window)
        self._retained.close_before(window)
        for arrivals in self._newest():
            replaced = self._retained.pop(arrivals.identities)
            if replaced is not None:
                self._withdraw(replaced)
            here = arrivals.take(arrivals.solutions.keys >= 0)
            self._count(here)
            self._retained.put(here.identities, here.solutions)
        self._arrived = []
        self.list.top(window)

    def _newest(self) -> list[_Arrivals]:
        """Return the newest arrival of each identity: every open window that holds an older one holds it, too."""
        if len(self._arrived) < 2:
            return self._arrived
        together = _Arrivals(
            Identities(
                np.concatenate([each.identities.heads for each in self._arrived]),
                np.concatenate([each.identities.tails for each in self._arrived]),
            ),
            np.concatenate([each.firsts for each in self._arrived]),
            Solutions.together([each.solutions for each in self._arrived]),
        )
        return [together.take(together.identities.newest())]

    def _encode(self, keys: pa.ChunkedArray) -> IntArray:
        encoded = keys.combine_chunks().dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        codes = self._codes.encode(texts)
        if self._codes.size > len(self._merits.rows):
            self._merits.grow(self._codes.size)
        if self._store is not None:
            self._merits.rows[codes] = self._store.rows(texts)
        of_rows: IntArray = codes[encoded.indices.to_numpy()]
        return of_rows

    def _withdraw(self, replaced: Solutions) -> None:
        """Take out what newer arrivals take the place of. O(what is held of its keys' windows)."""
        parts = self._parts(replaced)
        if not self._latest_only:
            # What replaces a solution is the same, only newer.
            self.list.withdraw(replaced.lasts, replaced.keys, parts, None)
            return
        held = self._retained.of_keys(replaced.keys, self._codes.size)
        held = held.take(np.argsort(held.lasts, kind="stable"))
        wanted = np.zeros(self._codes.size, dtype=np.bool_)

        def left(last: int, keys: IntArray) -> Rows:
            wanted[keys] = True
            its = held.take(slice(*np.searchsorted(held.lasts, [last, last + 1]).tolist()))
            its = its.take(wanted[its.keys])
            wanted[keys] = False
            return Rows(its.times, its.keys, its.keys, self._parts(its))

        self.list.withdraw(replaced.lasts, replaced.keys, parts, left)

    def _count(self, here: _Arrivals) -> None:
        """Hand arrivals on, pane by pane."""
        solutions = here.solutions
        if not len(solutions):
            return
        spans = np.column_stack([here.firsts, solutions.lasts])
        starts = np.flatnonzero(np.any(np.diff(spans, axis=0, prepend=spans[:1] - 1) != 0, axis=1))
        for start, stop in zip(starts.tolist(), [*starts[1:].tolist(), len(spans)], strict=True):
            each = solutions.take(np.arange(start, stop))
            rows = Rows(each.times, each.keys, each.keys, self._parts(each))
            self.list.add(int(spans[start, 0]), int(spans[start, 1]), rows)

    def _parts(self, solutions: Solutions) -> Columnwise:
        """Return the values that each aggregate is of; the count is of no value."""
        nothing, variables = np.empty(0), self._columns.variables
        return tuple(nothing if of is None else solutions.parts[variables.index(of)] for of in self._columns.of)

    # Changes of the remote's values ---------------------------------------------------------------

    def apply_changes(self, keys: Iterable[str]) -> None:
        """Rescore keys whose remote values have changed."""
        if self._store is None:
            return
        codes = self._codes.find(list(keys))
        self._merits.rows[codes] = self._store.rows(self._codes.texts(codes).tolist())
        self.list.change(codes)

    # What an answer needs -------------------------------------------------------------------------

    def top(self, window: int) -> Top:
        """Return a window's best, by their keys; uncertain is only what came too late."""
        found = self.list.top(window)
        rows = self._named(found.rows.take(slice(self.k)))
        if window > self._uncertain_until:
            return Top(window, rows, found.merits[: self.k])
        reason = "a solution that came too late could belong here"
        return Top(window, rows, found.merits[: self.k], Certainty.APPROXIMATE, reason, math.inf)

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best: its key and its aggregates."""
        return {self._key: rows.keys[at], **self._columns.terms(rows.parts, at)}

    def wanted(self, window: int, limit: int, absent_before: float = math.inf) -> Wanted:
        """Return the keys to ask for: of those that have no score only the first ``limit``. O(keys) on columns."""
        assert self._store is not None
        keys = self._without_merit()
        expected = self.scoring.expected(self._parts_of(keys), len(keys))
        # What promises nothing comes last.
        expected = np.where(np.isnan(expected), -math.inf, expected)
        found = self.list.top(window)
        _, lasts = self._windows.spans(found.rows.times)
        held = Proposed(tuple(self._named(found.rows).keys.tolist()), found.merits, lasts)
        rows = self._merits.rows[keys]
        is_due = (rows >= 0) & (self._store.fetched_at(rows) <= absent_before)
        unknown, absent = (self._first(limit, keys[which], expected[which]) for which in (rows < 0, is_due))
        return Wanted(unknown, held, absent)

    def needed(self) -> Iterable[str]:
        """Return the keys of the open windows."""
        return list(self._codes.texts(self._codes.used()).tolist())

    def content(self, window: int) -> Content:
        """Return what a window holds: its best keys, and some that stand for all others. O(keys) on columns."""
        keys = self.list.inside()
        merits = self.list.merits(keys)
        in_order = np.argsort(np.where(np.isnan(merits), -math.inf, -merits), kind="stable")
        first, rest = in_order[:CONSIDERED], in_order[CONSIDERED:]
        # Every so many stand for those between them.
        some = rest[:: max(1, -(-len(rest) // STANDING_FOR_OTHERS))]
        return Content(self._rows_of(keys[first]), self._rows_of(keys[some]), float(len(rest)))

    def _rows_of(self, keys: IntArray) -> Rows:
        return self._named(Rows(self.list.newest(keys), keys, keys, self._parts_of(keys)))

    def unscored(self, window: int) -> int:
        """Return how many keys have no score, although what is known of them would let them be results."""
        return len(self._without_merit())

    def without_value(self, window: int, bar: float) -> FloatArray:
        """Return the merits that keys the replica does not know could have, of those that could reach the bar."""
        keys = self._without_merit()
        keys = keys[self._merits.rows[keys] < 0]
        reaches = self.scoring.reaches(self._parts_of(keys), len(keys))
        return reaches[reaches >= bar]

    def stale_can_reach(self, window: int, bar: float, fetched: frozenset[str]) -> bool:
        """Say whether a key that has not been fetched just now could reach the bar. O(keys) on columns."""
        stale = np.setdiff1d(self.list.inside(), self._codes.find(list(fetched)))
        parts = self._parts_of(stale)
        can = self.scoring.can_count(parts, len(stale))
        parts, count = tuple(part[can] for part in parts), int(can.sum())
        if not count:
            return False
        # The most promising alone decides it as a rule.
        at = np.argsort(-self.scoring.expected(parts, count))[:1]
        likely = self.scoring.reaches(tuple(part[at] for part in parts), 1)
        return bool(likely[0] >= bar or (self.scoring.reaches(parts, count) >= bar).any())

    def _without_merit(self) -> IntArray:
        keys = self.list.inside()
        keys = keys[np.isnan(self.list.merits(keys))]
        return keys[self.scoring.can_count(self._parts_of(keys), len(keys))]

    def _parts_of(self, keys: IntArray) -> tuple[FloatArray, ...]:
        return self._merits.parts(self.list.aggregates(keys))

    def _first(self, limit: int, keys: IntArray, merits: FloatArray) -> list[str]:
        names = self._codes.texts(keys)
        first: list[str] = names[best(limit, merits, self.list.newest(keys), names)].tolist()
        return first

    def _named(self, rows: Rows) -> Rows:
        names = self._codes.texts(rows.keys)
        return Rows(rows.times, names, names, rows.parts)

    # Time goes on ---------------------------------------------------------------------------------

    def close_before(self, window: int) -> None:
        """Let go of all that lies only in windows before this one."""
        self._open_from = max(self._open_from, window)
        self.list.close_before(window)
        self._retained.close_before(window)
        alive = self.list.inside()
        if len(self._codes) > 2 * len(alive) + _SLACK:
            self._codes.release(np.setdiff1d(self._codes.used(), alive))

    def _check(self) -> None:
        """Assert every invariant. O(all that is held)."""
        self.list._check()
        self._retained._check()
        assert not self._arrived
        alive = self.list.inside()
        assert set(alive.tolist()) <= set(self._codes.used().tolist())
        counts = self.list.aggregates(alive)[0]
        assert int(counts.sum()) == len(self._retained)
        held = self._retained.of_keys(alive, self._codes.size)
        newest = np.full(self._codes.size, NEVER)
        np.maximum.at(newest, held.keys, held.times)
        assert np.array_equal(np.bincount(held.keys, minlength=self._codes.size)[alive], counts)
        assert np.array_equal(newest[alive], self.list.newest(alive))
        if self._store is not None:
            rows = self._store.rows(self._codes.texts(alive).tolist())
            assert np.array_equal(rows, self._merits.rows[alive])
