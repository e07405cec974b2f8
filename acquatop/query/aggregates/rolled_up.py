"""Ranking of groups of a join: aggregates per key, added up by what the remotes say of the keys."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pyarrow as pa

from acquatop.answer.expected_quality import considered
from acquatop.ingest.composite_keys import terms_of_key
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.query.aggregates.content import AggregateStore
from acquatop.query.aggregates.whole_window import parts_of_nothing
from acquatop.query.contenders import Contenders, first_of
from acquatop.query.exactness import Extents, extents_of
from acquatop.refresh.proposers.contract import Proposed
from acquatop.refresh.replica_refresh import Inquiry, Wanted
from acquatop.topk.aggregates.multi_aggregate import Columnwise
from acquatop.topk.contract import Certainty, FloatArray, IntArray, Rows, Top
from acquatop.topk.order import best, ranking
from acquatop.windows import Windows
from replica.key_tuples import SEPARATOR, terms_in
from replica.store import JoinedStore
from rspql.plan import TopKPlan

_LATE = "a solution that came too late could belong here"


@dataclass(frozen=True)
class _Groups:
    """Groups of a window: their aggregates and merits, and the keys in each.

    ``keys`` are codes; one that joins nothing is in no group, another may be in several.
    """

    rows: Rows
    merits: FloatArray
    keys: IntArray
    group_of: IntArray

    def __len__(self) -> int:
        return len(self.rows)


class RolledUpRanking:
    """Groups of one query's join, made at each close of what is known of the window's keys.

    A key's own score is that of a group which it is alone: the greater it is, the more it is worth
    to know the key. O(keys) at a close.
    """

    def __init__(
        self,
        plan: TopKPlan,
        store: JoinedStore,
        windows: Windows,
        content: AggregateStore,
        *,
        n: int,
    ) -> None:
        assert plan.aggregate is not None
        assert plan.roll_up is not None
        self.k = plan.k + plan.offset
        self.scoring = ReplicaScoring(plan.score, None)
        self._names = plan.roll_up.keys
        self._stream_keys = plan.aggregate.keys
        self._numbers = plan.score.stream_variables
        self._store = store
        self._windows = windows
        self._content = content
        self._columns = content.columns
        self._codes = content.codes
        self._held = self.k + n
        self._found: _Groups | None = None

    @property
    def list(self) -> Sized:
        """Groups of the last window."""
        return () if self._found is None else self._found

    def settle(self, window: int) -> None:
        """Count all arrivals; this is done once for all rankings."""
        self._content.settle(window)
        self._found = None

    def apply_changes(self, keys: Iterable[str], first: frozenset[str]) -> None:
        """Look up the keys whose remote values have changed."""
        self._content.look_up(keys)
        self._found = None

    def leave(self) -> None:
        """Do nothing: the content has nothing of this ranking."""

    def close_before(self, window: int) -> None:
        """Do nothing: the content is released once for all rankings."""

    # The groups -----------------------------------------------------------------------------------

    def _groups(self, window: int) -> _Groups:
        if self._found is None:
            keys, places = self._joined()
            group_of, texts = self._numbered(keys, places)
            newest, parts = self._content.keyed.totals.rolled_up(keys, group_of, len(texts))
            if not (self._names or len(texts)):
                _, closes_ms = self._windows.bounds(window)
                newest, texts = np.array([closes_ms]), np.array([""], dtype=object)
                parts = parts_of_nothing(self._columns.aggregates)
            rows = Rows(newest, texts, texts, parts)
            self._found = _Groups(rows, self._merits(parts), keys, group_of)
        return self._found

    def _joined(self) -> tuple[IntArray, IntArray]:
        """Return the keys that join something, once for each place of that, and the places."""
        keys = self._content.keyed.inside()
        keys = keys[self._content.rows[keys] >= 0]
        rows = self._content.rows[keys]
        runs = self._store.runs(rows)
        if runs is not None:
            return keys[runs.owners], runs.places
        is_there = self._store.present(rows)
        return keys[is_there], rows[is_there]

    def _numbered(self, keys: IntArray, places: IntArray) -> tuple[IntArray, np.ndarray]:
        """Return the number of the group of each key at its place, and the groups' texts."""
        numbers, texts = np.zeros(len(keys), dtype=np.int64), np.array([""], dtype=object)
        for at, name in enumerate(self._names):
            codes, terms = self._coded_terms(name, keys, places)
            own = np.array([term or "" for term in terms], dtype=object)
            known, numbers = np.unique(numbers * max(1, len(own)) + codes, return_inverse=True)
            before, last = np.divmod(known, max(1, len(own)))
            texts = texts[before] + SEPARATOR + own[last] if at else own[last]
        if not self._names:
            texts = texts[: min(1, len(keys))]
        return numbers, texts

    def _coded_terms(
        self, name: str, keys: IntArray, places: IntArray
    ) -> tuple[IntArray, Sequence[str | None]]:
        """Return the number of a variable's term for each key at its place, and the terms."""
        if name not in self._stream_keys:
            return self._store.distinct_terms(name, places)
        texts: list[str] = self._codes.texts(keys).tolist()
        if len(self._stream_keys) > 1:
            at = self._stream_keys.index(name)
            texts = [terms_in(text)[at] for text in texts]
        coded = pa.array(texts, pa.string()).dictionary_encode()
        return coded.indices.to_numpy().astype(np.int64), coded.dictionary.to_pylist()

    def _merits(self, kept: Columnwise) -> FloatArray:
        parts = tuple(self._columns.numbers(name, kept) for name in self._numbers)
        count = len(kept[0])
        ratios = self._columns.ratios(kept)
        return self.scoring.merits_at(np.full(count, -1), parts, ratios)

    # Input of an answer ---------------------------------------------------------------------------

    def top(self, window: int) -> Top:
        """Return the best groups of a window, as far as the keys are known."""
        groups = self._groups(window)
        scored = np.flatnonzero(~np.isnan(groups.merits))
        rows = groups.rows.take(scored)
        at = scored[best(self.k, groups.merits[scored], rows.times, rows.keys)]
        return self._said(window, groups, at)

    def best(self, window: int, count: int) -> Top:
        """Return the best ``count`` of a window, and all that tie with the last of them."""
        groups = self._groups(window)
        scored = np.flatnonzero(~np.isnan(groups.merits))
        if len(scored) > count:
            merits = groups.merits[scored]
            bar = np.partition(merits, len(scored) - count)[len(scored) - count]
            scored = scored[merits >= bar]
        rows = groups.rows.take(scored)
        order = ranking(groups.merits[scored], rows.times, rows.keys)
        return self._said(window, groups, scored[order])

    def _said(self, window: int, groups: _Groups, at: IntArray) -> Top:
        top = Top(window, groups.rows.take(at), groups.merits[at])
        if window > self._content.uncertain_until:
            return top
        return replace(top, certainty=Certainty.APPROXIMATE, reason=_LATE, bound=math.inf)

    def contenders(self, window: int, most: int) -> Contenders:
        """Return the best groups, and some without a score."""
        groups = self._groups(window)
        parts = groups.rows.parts
        numbers = tuple(self._columns.numbers(name, parts) for name in self._numbers)
        return first_of(groups.rows, groups.merits, numbers, most, is_whole=False)

    def best_of_groups(self, window: int, count: int, per: Sequence[str]) -> None:
        """Return None: what belongs together is chosen of all groups, which are at hand."""
        return

    def column(self, rows: Rows, name: str) -> Sequence[str] | None:
        """Return the terms of a variable that is grouped by; None for others."""
        if name not in self._names:
            return None
        return [terms_of_key(self._names, text)[name] for text in rows.keys.tolist()]

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best: what it is grouped by, and its aggregates."""
        key = terms_of_key(self._names, rows.keys[at])
        return {**key, **self._columns.terms(rows.parts, at)}

    @property
    def keeps_terms(self) -> bool:
        """True: rows have all their terms."""
        return True

    def ratios(self, rows: Rows, at: int) -> Mapping[str, Fraction]:
        """Return the averages of one of the best."""
        return self._columns.averages(rows.parts, at)

    def extents(self, window: int) -> Extents:
        """Return the sizes of the groups' aggregates that are integers or decimals."""
        return extents_of(self._columns.greatest(self._groups(window).rows.parts))

    # What is known of the keys --------------------------------------------------------------------

    def unscored(self, window: int) -> int:
        """Return the number of keys of which nothing is known."""
        return self.count_unknown()

    def count_unknown(self) -> int:
        """Return the number of keys of which nothing is known: each may belong to any group."""
        return int(np.count_nonzero(self._content.rows[self._content.keyed.inside()] < 0))

    def is_wholly_in(self, fetched: frozenset[str]) -> bool:
        """Return True if all keys of the window are among some."""
        keys = self._content.keyed.inside()
        is_in = np.zeros(self._codes.size, dtype=np.bool_)
        is_in[self._codes.find(list(fetched))] = True
        return bool(is_in[keys].all())

    def oldest_fetches(self, window: int, groups: Sequence[str]) -> FloatArray:
        """Return for some groups when the oldest of the values was fetched that they are made of.

        NaN if there is none.
        """
        found = self._groups(window)
        oldest = np.full(len(found), np.inf)
        fetched_at = self._store.fetched_at(self._content.rows[found.keys])
        np.minimum.at(oldest, found.group_of, fetched_at)
        places = {text: at for at, text in enumerate(found.rows.keys.tolist())}
        some = oldest[np.array([places[each] for each in groups], dtype=np.int64)]
        return np.where(np.isfinite(some), some, np.nan)

    def members(self, window: int, group: str) -> Sequence[str]:
        """Return the keys of a group. O(keys)."""
        found = self._groups(window)
        (at,) = np.flatnonzero(found.rows.keys == group)
        members: list[str] = self._codes.texts(found.keys[found.group_of == at]).tolist()
        return members

    def wanted(self, window: int, inquiry: Inquiry) -> Wanted:
        """Return the keys to ask for: of each kind the first by what they are worth alone."""
        keys = self._content.keyed.inside()
        merits = self._own_merits(keys)
        rows = self._content.rows[keys]
        is_there = (rows >= 0) & self._store.present(rows)
        is_due = (rows >= 0) & ~is_there
        is_due &= self._store.fetched_at(rows) <= inquiry.absent_before
        most = max(inquiry.limit, self._held)
        most = max(most, considered(self.k)) if inquiry.include_dropped else most
        unknown = self._first(inquiry.limit, keys, merits, rows < 0)
        absent = self._first(inquiry.limit, keys, merits, is_due)
        return Wanted(
            self._codes.texts(unknown).tolist(),
            self._proposed(self._first(most, keys, merits, is_there)),
            self._codes.texts(absent).tolist(),
        )

    def _own_merits(self, keys: IntArray) -> FloatArray:
        merits = self._merits(self._content.keyed.totals.aggregates(keys))
        return np.where(np.isnan(merits), -math.inf, merits)

    def _first(self, limit: int, keys: IntArray, merits: FloatArray, which: np.ndarray) -> IntArray:
        keys, merits = keys[which], merits[which]
        newest = self._content.keyed.totals.newest(keys)
        return keys[best(limit, merits, newest, self._codes.texts(keys))]

    def _proposed(self, keys: IntArray) -> Proposed:
        totals = self._content.keyed.totals
        _, lasts = self._windows.spans(totals.newest(keys))
        kept = totals.aggregates(keys)
        parts = tuple(self._columns.numbers(name, kept) for name in self._numbers)
        texts: list[str] = self._codes.texts(keys).tolist()
        return Proposed(tuple(texts), self._own_merits(keys), lasts, parts)

    def needed(self) -> Iterable[str]:
        """Return the keys of the open windows."""
        return list(self._codes.texts(self._codes.used()).tolist())

    # State ----------------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """Return no bytes: the content holds the whole state."""
        return b""

    def resume(self, snapshot: bytes) -> None:
        """Do nothing."""
