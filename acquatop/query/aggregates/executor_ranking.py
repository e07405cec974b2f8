"""Ranking of keys by aggregates that executors keep; the driver has only the best keys."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction

import numpy as np

from acquatop.answer.expected_quality import STANDING_FOR_OTHERS, ContentSample
from acquatop.ingest.buckets.task import BucketBest, BucketRanking, merits_of, reaches_of
from acquatop.ingest.composite_keys import terms_of_key
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.query.aggregates.executor_content import ExecutorAggregates
from acquatop.query.contenders import Contenders, first_of
from acquatop.query.exactness import Extents, extents_of
from acquatop.refresh.proposers.contract import Proposed
from acquatop.refresh.replica_refresh import Inquiry, Wanted
from acquatop.topk.contract import NO_ROWS, AnyArray, Certainty, FloatArray, IntArray, Rows, Top
from acquatop.topk.order import best
from acquatop.windows import Windows
from replica.store import JoinedStore
from replica.store.runs import Runs
from rspql.plan import TopKPlan


class ExecutorRanking:
    """Aggregates of one query's best keys, of each bucket, joined with a replica.

    Each bucket gives as many keys as are wanted, plus as many as can be refreshed in between. The
    best of all are therefore among them whatever the refresh brings; if it brings more, the buckets
    are asked again. Memory is O(buckets x keys asked of each).
    """

    def __init__(
        self,
        plan: TopKPlan,
        store: JoinedStore | None,
        windows: Windows,
        content: ExecutorAggregates,
        *,
        n: int,
    ) -> None:
        assert plan.aggregate is not None
        self.k = plan.k + plan.offset
        self.scoring = ReplicaScoring(plan.score, store)
        self._keys = plan.aggregate.keys
        self._names = plan.score.stream_variables
        self._store = store
        self._windows = windows
        self._content = content
        self._columns = content.columns
        self._held = self.k + n
        self._spare = n + content.asked
        sample = 0 if store is None else -(-STANDING_FOR_OTHERS // content.buckets)
        self._number = content.enrol(BucketRanking(plan.score, self.k + self._spare, sample))
        self._found: _Found | None = None

    def leave(self) -> None:
        """Remove this ranking from the content; others stay."""
        self._content.leave(self._number)

    @property
    def list(self) -> Rows:
        """Keys that are known here."""
        return NO_ROWS if self._found is None else self._found.rows

    def settle(self, window: int) -> None:
        """Note that all records of a window have come."""
        self._content.settle(window)
        self._found = None

    def _look(self, absent_before: float = math.inf) -> _Found:
        if self._found is None:
            self._found = _Found(
                self._content.bests(self._number, absent_before), len(self._columns.aggregates)
            )
        return self._found

    def apply_changes(self, keys: Iterable[str], first: frozenset[str]) -> None:
        """Ask the buckets again if more has changed than is known here."""
        if self._found is None:
            return
        here = set(self._found.rows.keys.tolist())
        changed = set(keys)
        if len(changed & here) > self._spare or self._content.values_have_changed(
            sorted(changed - here)
        ):
            self._content.look_again()
            self._found = None

    # Input of an answer ---------------------------------------------------------------------------

    def top(self, window: int) -> Top:
        """Return a window's best by their keys; only late solutions make it uncertain."""
        found = self._look()
        merits = self._merits(found)
        chosen = self._best(self.k, np.flatnonzero(~np.isnan(merits)), merits)
        rows, merits = found.rows.take(chosen), merits[chosen]
        if window > self._content.uncertain_until:
            return Top(window, rows, merits)
        reason = "a solution that came too late could belong here"
        return Top(window, rows, merits, Certainty.APPROXIMATE, reason, math.inf)

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best: its keys and its aggregates."""
        key = terms_of_key(self._keys, rows.keys[at])
        return {**key, **self._columns.terms(rows.parts, at)}

    @property
    def keeps_terms(self) -> bool:
        """True: rows have all their terms."""
        return True

    def ratios(self, rows: Rows, at: int) -> Mapping[str, Fraction]:
        """Return the averages of one of the best."""
        return self._columns.averages(rows.parts, at)

    def wanted(self, window: int, inquiry: Inquiry) -> Wanted:
        """Return the keys to ask for.

        Of those without a score only the first of each bucket are known.
        """
        assert self._store is not None
        found = self._look(inquiry.absent_before)
        merits, rows = self._merits(found), self._rows(found)
        most = len(merits) if inquiry.include_dropped else self._held
        held = self._best(most, np.flatnonzero(~np.isnan(merits)), merits)
        _, lasts = self._windows.spans(found.rows.times[held])
        parts = self._parts(found)
        names = tuple(found.rows.keys[held].tolist())
        expected = self.scoring.expected(parts, len(found.rows))
        # Keys without an expected merit come last.
        expected = np.where(np.isnan(expected), -math.inf, expected)
        without = self._without_merit(found)
        is_due = without & (rows >= 0)
        is_due[is_due] = self._store.fetched_at(rows[is_due]) <= inquiry.absent_before
        unknown, absent = (
            found.rows.keys[self._best(inquiry.limit, np.flatnonzero(which), expected)].tolist()
            for which in (without & (rows < 0), is_due)
        )
        proposed = Proposed(names, merits[held], lasts, tuple(part[held] for part in parts))
        return Wanted(unknown, proposed, absent)

    def needed(self) -> Iterable[str]:
        """Return the keys of the open windows that are known here."""
        return list(self._look().rows.keys.tolist())

    def content(self, window: int) -> ContentSample:
        """Return a window's content: the keys known here, and a sample of all others."""
        found = self._look()
        return ContentSample(
            self._scored(found.rows), self._scored(found.sample), float(found.rest)
        )

    def snapshot(self) -> bytes:
        """Return no bytes: the content holds the whole state."""
        return b""

    def resume(self, snapshot: bytes) -> None:
        """Do nothing."""

    def extents(self, window: int) -> Extents:
        """Return the sizes of the window's aggregates that are integers or decimals."""
        return extents_of(self._look().greatest)

    def unscored(self, window: int) -> int:
        """Return the number of keys without a score that could otherwise be results."""
        found = self._look()
        return found.unscored + int(np.count_nonzero(self._without_merit(found)))

    def contenders(self, window: int, most: int) -> Contenders:
        """Return the best of the keys known here, and some without a score."""
        found = self._look()
        parts = self._parts(found)
        return first_of(found.rows, self._merits(found), parts, most, is_whole=False)

    def without_value(self, window: int, bar: float) -> FloatArray:
        """Return the possible merits of keys unknown to the replica, if they reach the bar."""
        found = self._look()
        unknown = self._without_merit(found) & (self._rows(found) < 0)
        reaches = np.concatenate(
            [found.reaches, reaches_of(self.scoring, self._parts(found), unknown)]
        )
        return reaches[reaches >= bar]

    def stale_can_reach(self, window: int, bar: float, fetched: frozenset[str]) -> bool:
        """Return True if a key that was not fetched just now could reach the bar."""
        found = self._look()
        if found.most >= bar:
            return True
        parts = self._parts(found)
        stale = np.array([key not in fetched for key in found.rows.keys], dtype=np.bool_)
        reaches = reaches_of(
            self.scoring, parts, stale & self.scoring.can_count(parts, len(found.rows))
        )
        return bool((reaches >= bar).any())

    def close_before(self, window: int) -> None:
        """Do nothing: the content is released once for all rankings."""

    def merits_in(self, rows: Rows, runs: Runs) -> FloatArray:
        """Return the merits of all that some of the best join, given their places."""
        ratios = self._columns.ratios(rows.parts)
        return self.scoring.merits_in(runs, self._numbers(rows), ratios)

    # Helpers --------------------------------------------------------------------------------------

    def _rows(self, found: _Found) -> IntArray:
        """Return the replica's present rows of the keys."""
        if self._store is None:
            return np.zeros(len(found.rows), dtype=np.int64)
        return self._store.rows(found.rows.keys.tolist())

    def _parts(self, found: _Found) -> tuple[FloatArray, ...]:
        return self._numbers(found.rows)

    def _numbers(self, rows: Rows) -> tuple[FloatArray, ...]:
        """Return the aggregates that the score needs."""
        return tuple(self._columns.numbers(name, rows.parts) for name in self._names)

    def _scored(self, rows: Rows) -> Rows:
        return Rows(rows.times, rows.identities, rows.keys, self._numbers(rows))

    def _merits(self, found: _Found) -> FloatArray:
        """Return the merits with the replica's present values."""
        kept = found.rows.parts
        ratios = self._columns.ratios(kept)
        return merits_of(self.scoring, self._rows(found), self._parts(found), kept, ratios)

    def _without_merit(self, found: _Found) -> BoolArray:
        return np.isnan(self._merits(found)) & self.scoring.can_count(
            self._parts(found), len(found.rows)
        )

    def _best(self, count: int, at: IntArray, merits: FloatArray) -> IntArray:
        assert self._found is not None
        rows = self._found.rows
        return at[best(count, merits[at], rows.times[at], rows.keys[at])]


class _Found:
    """Combined results of all buckets."""

    def __init__(self, bests: list[BucketBest], width: int) -> None:
        self.rows = _together([each.rows for each in bests], width)
        self.sample = _together([each.sample for each in bests], width)
        self.rest = sum(each.rest for each in bests)
        self.unscored = sum(each.unscored for each in bests)
        self.greatest: dict[str, tuple[float, float]] = {}
        for each in bests:
            for name, sizes in each.greatest.items():
                known = self.greatest.get(name, sizes)
                self.greatest[name] = max(known[0], sizes[0]), max(known[1], sizes[1])
        nothing = np.empty(0)
        self.reaches = np.concatenate(
            [nothing, *(np.repeat(each.reaches, each.counts) for each in bests)]
        )
        self.most = max(
            (each.most for each in bests if not math.isnan(each.most)), default=math.nan
        )


def _together(several: list[Rows], width: int) -> Rows:
    if several:
        return Rows.together(several)
    nothing: AnyArray = np.empty(0, dtype=object)
    return Rows(np.empty(0, dtype=np.int64), nothing, nothing, (np.empty(0),) * width)
