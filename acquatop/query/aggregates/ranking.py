"""Ranking of keys by their aggregates, over a content that other queries may rank, too."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa

from acquatop.answer.expected_quality import STANDING_FOR_OTHERS, ContentSample, considered
from acquatop.ingest.composite_keys import column_of_keys, terms_of_key
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.ingest.unscored import objects
from acquatop.query.aggregates.content import AggregateStore
from acquatop.query.aggregates.gathered import GatheredTerms
from acquatop.query.contenders import Contenders, first_of
from acquatop.query.exactness import Extents, extents_of
from acquatop.refresh.proposers.contract import Proposed
from acquatop.refresh.replica_refresh import Inquiry, Wanted
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.aggregates.windowed_aggregate import WindowedAggregate
from acquatop.topk.contract import AnyArray, Certainty, FloatArray, IntArray, Rows, Top
from acquatop.topk.groups import bars_of, groups_of
from acquatop.topk.order import best, ranking
from acquatop.windows import Windows
from replica.store import JoinedStore
from replica.store.runs import Runs
from rspql.plan import TopKPlan

_LATE = "a solution that came too late could belong here"
_LEAST = float(np.finfo(np.float64).min)


class _Merits:
    """Merits of keys, given by their codes, from their aggregates and replica rows."""

    def __init__(
        self, scoring: ReplicaScoring, content: AggregateStore, names: tuple[str, ...]
    ) -> None:
        self._scoring = scoring
        self._content = content
        self._names = names

    def parts(self, kept: Columnwise) -> tuple[FloatArray, ...]:
        """Return the aggregates that the score needs."""
        return tuple(self._content.columns.numbers(name, kept) for name in self._names)

    def merits(self, keys: AnyArray, parts: Columnwise) -> FloatArray:
        """Return each key's merit with the replica's present values; NaN if there is none."""
        ratios = self._content.columns.ratios(parts)
        return self._scoring.merits_at(self._content.rows[keys], self.parts(parts), ratios)

    def reach(
        self, lows: tuple[float, ...], highs: tuple[float, ...], keys: AnyArray | None = None
    ) -> float:
        """Return infinity: nothing is dropped, so the value is not used."""
        return math.inf


class AggregateRanking:
    """Aggregates of all keys of one query, joined with a replica; without one, the stream decides.

    Nothing is dropped: an answer is uncertain only because of unknown keys and late solutions.
    Memory is O(keys with a solution in an open window), besides the content.
    """

    def __init__(
        self,
        plan: TopKPlan,
        store: JoinedStore | None,
        windows: Windows,
        content: AggregateStore,
        *,
        n: int,
        gathered: GatheredTerms | None = None,
    ) -> None:
        assert plan.aggregate is not None
        self._gathered = gathered
        self.k = plan.k + plan.offset
        self.scoring = ReplicaScoring(plan.score, store)
        self._keys = plan.aggregate.keys
        self._store = store
        self._windows = windows
        self._content = content
        self._columns = content.columns
        self._codes = content.codes
        self._merits = _Merits(self.scoring, content, plan.score.stream_variables)
        self.list = WindowedAggregate(
            self.k + n,
            self._columns.aggregates,
            self._merits,
            names=self._codes.texts,
            content=content.keyed,
        )

    def apply_changes(self, keys: Iterable[str], first: frozenset[str]) -> None:
        """Rescore keys whose remote values have changed."""
        if self._store is not None:
            self.list.change(self._content.look_up(keys))

    def leave(self) -> None:
        """Remove this ranking from the content; others stay."""
        self.list.leave()

    def settle(self, window: int) -> None:
        """Count all arrivals; this is done once for all rankings."""
        self._content.settle(window)
        self.list.top(window)
        if self._gathered is not None:
            self._gathered.enter(window)

    # Input of an answer ---------------------------------------------------------------------------

    def top(self, window: int) -> Top:
        """Return a window's best by their keys; only late solutions make it uncertain."""
        found = self.list.top(window)
        rows = self._named(found.rows.take(slice(self.k)))
        if window > self._content.uncertain_until:
            return Top(window, rows, found.merits[: self.k])
        return Top(window, rows, found.merits[: self.k], Certainty.APPROXIMATE, _LATE, math.inf)

    def best(self, window: int, count: int) -> Top:
        """Return the best ``count`` of a window, and all that tie with the last. O(keys)."""
        keys, merits = self._scored()
        if len(keys) > count:
            bar = np.partition(merits, len(keys) - count)[len(keys) - count]
            at = merits >= bar
            keys, merits = keys[at], merits[at]
        return self._ranked(window, keys, merits)

    def best_of_groups(self, window: int, count: int, per: Sequence[str]) -> Top | None:
        """Return the best ``count`` of each group, and all that tie; None if others group them.

        O(keys).
        """
        if not all(name in self._keys for name in per):
            return None
        keys, merits = self._scored()
        terms = [terms_of_key(self._keys, text) for text in self._codes.texts(keys).tolist()]
        columns = [objects([each[name] for each in terms]) for name in per]
        at = merits >= bars_of(groups_of(columns, len(keys)), merits, count)
        return self._ranked(window, keys[at], merits[at])

    def _scored(self) -> tuple[IntArray, FloatArray]:
        keys = self.list.inside()
        merits = self.list.merits(keys)
        scored = np.flatnonzero(~np.isnan(merits))
        return keys[scored], merits[scored]

    def _ranked(self, window: int, keys: IntArray, merits: FloatArray) -> Top:
        order = ranking(merits, self.list.newest(keys), self._codes.texts(keys))
        keys, merits = keys[order], merits[order]
        found = Rows(self.list.newest(keys), keys, keys, self.list.aggregates(keys))
        rows = self._named(found)
        if window > self._content.uncertain_until:
            return Top(window, rows, merits)
        return Top(window, rows, merits, Certainty.APPROXIMATE, _LATE, math.inf)

    def everything(self, window: int) -> Rows:
        """Return all keys of the window that was entered last, in no order. O(keys)."""
        keys = self.list.inside()
        return self._named(Rows(self.list.newest(keys), keys, keys, self.list.aggregates(keys)))

    def terms_of(self, rows: Rows, name: str) -> pa.Array:
        """Return the terms of one of the variables grouped by, or of an aggregate; "" for none."""
        if name not in self._keys:
            found = (self._columns.terms(rows.parts, at) for at in range(len(rows)))
            return pa.array([each.get(name, "") for each in found], pa.string())
        return column_of_keys(self._keys, pa.array(rows.keys, pa.string()), name)

    def numbers_of(self, rows: Rows, name: str) -> FloatArray:
        """Return the numbers of one of the aggregates."""
        return self._columns.numbers(name, rows.parts)

    def is_uncertain(self, window: int) -> bool:
        """Return True if a window lacks a late solution."""
        return window <= self._content.uncertain_until

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return the terms of the variable that solutions are grouped by, if it is one."""
        terms: list[str] = rows.keys.tolist()
        return terms if self._keys == (name,) else None

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best: its keys and its aggregates."""
        key = terms_of_key(self._keys, rows.keys[at])
        gathered = {} if self._gathered is None else self._gathered.terms(rows, at)
        return {**key, **self._columns.terms(rows.parts, at), **gathered}

    @property
    def keeps_terms(self) -> bool:
        """True unless some terms are gathered from solutions of the window."""
        return self._gathered is None

    def ratios(self, rows: Rows, at: int) -> Mapping[str, Fraction]:
        """Return the averages of one of the best."""
        return self._columns.averages(rows.parts, at)

    def wanted(self, window: int, inquiry: Inquiry) -> Wanted:
        """Return the keys to ask for; of those without a score only the first ``limit``.

        O(keys) on columns.
        """
        assert self._store is not None
        keys = self._without_merit()
        expected = self.scoring.expected(self._parts_of(keys), len(keys))
        # Keys without an expected merit come last.
        expected = np.where(np.isnan(expected), -math.inf, expected)
        held = self._best_considered() if inquiry.include_dropped else self._candidates(window)
        rows = self._content.rows[keys]
        is_due = (rows >= 0) & (self._store.fetched_at(rows) <= inquiry.absent_before)
        unknown, absent = (
            self._first(inquiry.limit, keys[which], expected[which]) for which in (rows < 0, is_due)
        )
        return Wanted(unknown, held, absent)

    def _candidates(self, window: int) -> Proposed:
        found = self.list.top(window)
        return self._proposed(found.rows.keys, found.merits)

    def _best_considered(self) -> Proposed:
        """Return the best keys with a merit, as many as are considered one by one for an answer."""
        keys, room = self.list.inside(), considered(self.k)
        merits = self.list.merits(keys)
        scored = np.flatnonzero(~np.isnan(merits))
        if len(scored) > room:
            scored = scored[np.argpartition(-merits[scored], room)[:room]]
        keys, merits = keys[scored], merits[scored]
        at = best(room, merits, self.list.newest(keys), self._codes.texts(keys))
        return self._proposed(keys[at], merits[at])

    def _proposed(self, keys: IntArray, merits: FloatArray) -> Proposed:
        _, lasts = self._windows.spans(self.list.newest(keys))
        return Proposed(
            tuple(self._codes.texts(keys).tolist()), merits, lasts, self._parts_of(keys)
        )

    def needed(self) -> Iterable[str]:
        """Return the keys of the open windows."""
        return list(self._codes.texts(self._codes.used()).tolist())

    def merits_in(self, rows: Rows, runs: Runs) -> FloatArray:
        """Return the merits of all that some of the best join, given their places."""
        parts = self._merits.parts(rows.parts)
        return self.scoring.merits_in(runs, parts, self._columns.ratios(rows.parts))

    def content(self, window: int) -> ContentSample:
        """Return a window's content: its best keys, and a sample of all others.

        O(keys) on columns.
        """
        keys = self.list.inside()
        merits = self.list.merits(keys)
        # After the answer's own come those without a merit: nothing is known of them.
        minus = np.where(np.isnan(merits), _LEAST, np.maximum(-merits, _LEAST))
        minus[np.isin(keys, self.list.top(window).rows.keys[: self.k])] = -math.inf
        room = max(self.k, considered(self.k))
        in_order = np.argpartition(minus, room) if len(keys) > room else np.arange(len(keys))
        first, rest = in_order[:room], in_order[room:]
        # Keys at regular distances stand for those between them.
        some = rest[:: max(1, -(-len(rest) // STANDING_FOR_OTHERS))]
        held, others = self._rows_of(keys[first]), self._rows_of(keys[some])
        return ContentSample(held, others, float(len(rest)), self._content.rows.take)

    def _rows_of(self, keys: IntArray) -> Rows:
        names = self._codes.texts(keys)
        return Rows(self.list.newest(keys), names, keys, self._parts_of(keys))

    def snapshot(self) -> bytes:
        """Return no bytes: the content holds the whole state."""
        return b""

    def resume(self, snapshot: bytes) -> None:
        """Do nothing."""

    def extents(self, window: int) -> Extents:
        """Return the sizes of the window's aggregates that are integers or decimals. O(keys)."""
        kept = self.list.aggregates(self.list.inside())
        return extents_of(self._columns.greatest(kept))

    def unscored(self, window: int) -> int:
        """Return the number of keys without a score that could otherwise be results."""
        return len(self._without_merit())

    def contenders(self, window: int, most: int) -> Contenders:
        """Return the best keys, and some without a score. O(keys)."""
        top = self.best(window, most + 1)
        keys = self.list.without_merit()[: most + 1]
        without = self._named(Rows(self.list.newest(keys), keys, keys, self.list.aggregates(keys)))
        rows = Rows.together([top.rows.take(slice(most + 1)), without])
        merits = np.concatenate([top.merits[: most + 1], np.full(len(keys), np.nan)])
        is_whole = not self.is_uncertain(window)
        return first_of(rows, merits, self._merits.parts(rows.parts), most, is_whole=is_whole)

    def without_value(self, window: int, bar: float) -> FloatArray:
        """Return the possible merits of keys unknown to the replica, if they reach the bar."""
        keys = self._without_merit()
        keys = keys[self._content.rows[keys] < 0]
        reaches = self.scoring.reaches(self._parts_of(keys), len(keys))
        return reaches[reaches >= bar]

    def stale_can_reach(self, window: int, bar: float, fetched: frozenset[str]) -> bool:
        """Return True if a key that was not fetched just now could reach the bar.

        O(keys) on columns. Usually one of the best is such a key: then no others are examined.
        """
        is_stale = np.ones(self._codes.size, dtype=np.bool_)
        is_stale[self._codes.find(list(fetched))] = False
        return self._one_can_reach(
            self.list.top(window).rows.keys, is_stale, bar
        ) or self._one_can_reach(self.list.inside(), is_stale, bar)

    def _one_can_reach(self, keys: IntArray, is_stale: BoolArray, bar: float) -> bool:
        stale = keys[is_stale[keys]]
        parts = self._parts_of(stale)
        can = self.scoring.can_count(parts, len(stale))
        parts, count = tuple(part[can] for part in parts), int(can.sum())
        if not count:
            return False
        # Usually the most promising key alone decides it.
        expected = self.scoring.expected(parts, count)
        at = np.array([np.argmax(np.where(np.isnan(expected), -math.inf, expected))])
        likely = self.scoring.reaches(tuple(part[at] for part in parts), 1)
        return bool(likely[0] >= bar or (self.scoring.reaches(parts, count) >= bar).any())

    def _without_merit(self) -> IntArray:
        keys = self.list.without_merit()
        return keys[self.scoring.can_count(self._parts_of(keys), len(keys))] if len(keys) else keys

    def _parts_of(self, keys: IntArray) -> tuple[FloatArray, ...]:
        return self._merits.parts(self.list.aggregates(keys))

    def _first(self, limit: int, keys: IntArray, merits: FloatArray) -> list[str]:
        names = self._codes.texts(keys)
        first: list[str] = names[best(limit, merits, self.list.newest(keys), names)].tolist()
        return first

    def _named(self, rows: Rows) -> Rows:
        names = self._codes.texts(rows.keys)
        return Rows(rows.times, names, names, rows.parts)

    # Progress of time -----------------------------------------------------------------------------

    def close_before(self, window: int) -> None:
        """Do nothing: the content is released once for all rankings."""

    def _check(self) -> None:
        """Assert every invariant. O(all that is held)."""
        self.list._check()
        self._content._check()
