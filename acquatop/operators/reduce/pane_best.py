"""The best k + n of each pane: where arrivals replace nothing, no other of the pane can matter for the values known.

What is left out is not forgotten: the ranges of its numbers tell what it could be worth once values change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa

from acquatop.operators.match import IDENTITY, KEY, Found, Matcher, number_column, term_column
from acquatop.operators.reduce.panes import by_pane, runs_of
from acquatop.operators.reduce.replica_view import ReplicaView
from acquatop.operators.scoring import BoolArray, ReplicaScoring
from acquatop.operators.waiting import LIMIT, objects
from acquatop.topk.contract import AnyArray, FloatArray, IntArray, Rows
from acquatop.topk.order import best
from acquatop.windows import Windows
from connectors.mapping import TIME
from rspql.plan import Score

FIRST, LAST, ROLE = "first", "last", "role"
_CANDIDATE, _SAMPLE = 1, 2
_PANES = b"panes"


@dataclass(frozen=True)
class Summary:
    """What a pane's rows do not say: how many events it has, whether scored ones, and whether others were left out.

    ``lows`` and ``highs`` are the ranges of all its numbers.
    """

    count: int
    let_go: bool
    shed: bool
    lows: tuple[float, ...]
    highs: tuple[float, ...]


@dataclass(frozen=True)
class Best:
    """One pane of one partition: its candidates, some that stand for all, and what was left out."""

    first: int
    last: int
    candidates: Rows
    sample: Rows
    summary: Summary


class PaneBest:
    """Scores what has been found with the replica's values, and keeps each pane's best, and all without a score.

    Of those without a score the newest 10 000 are kept. ``terms`` are the variables that answers show; ``sampled`` of
    a pane are handed on whatever they are worth. O(events).
    """

    def __init__(
        self,
        matcher: Matcher,
        windows: Windows,
        score: Score,
        capacity: int,
        *,
        terms: tuple[str, ...],
        view: ReplicaView | None,
        sampled: int,
    ) -> None:
        self.matcher = matcher
        self.windows = windows
        self._score = score
        self._capacity = capacity
        self._terms = terms
        self._view = view
        self._sampled = sampled

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the rows kept, pane by pane, and the panes' summaries with the schema."""
        assert found is not None
        keys, parts = found.keys, tuple(found.numbers(name) for name in self._score.stream_variables)
        indices = np.asarray(keys.indices.to_numpy(), dtype=np.int64)
        scoring = ReplicaScoring(self._score, self._view)
        merits = scoring.merits_at(indices if self._view is None else self._rows(found, self._view)[indices], parts)
        kept: list[tuple[int, int, IntArray, IntArray]] = []
        summaries: list[Summary] = []
        for first, last, at in self._panes(found):
            chosen, summary = self._chosen(found, merits, parts, at)
            sample = at[_sample(len(at), self._sampled, first)]
            rows = np.union1d(chosen, sample)
            roles = _CANDIDATE * np.isin(rows, chosen) + _SAMPLE * np.isin(rows, sample)
            kept.append((first, last, rows, roles))
            summaries.append(summary)
        return self._table(found, keys, parts, kept, summaries)

    def _panes(self, found: Found) -> list[tuple[int, int, IntArray]]:
        return found.made(("panes", self.windows), lambda: list(by_pane(self.windows, found.times)))

    @staticmethod
    def _rows(found: Found, view: ReplicaView) -> IntArray:
        return found.made(("rows", id(view)), lambda: view.rows(found.keys.dictionary))

    def _chosen(
        self, found: Found, merits: FloatArray, parts: tuple[FloatArray, ...], at: IntArray
    ) -> tuple[IntArray, Summary]:
        of_pane = merits[at]
        unscored = np.isnan(of_pane)
        scored = at if not unscored.any() else at[~unscored]
        times = found.times
        order = best(self._capacity, merits[scored], times[scored], _Identities(found, scored))  # type: ignore[arg-type]
        waiting = at[unscored]
        shed = len(waiting) > LIMIT
        if shed:
            order_of_waiting = np.lexsort((waiting, -times[waiting]))[:LIMIT]
            waiting = waiting[order_of_waiting]
        lows = tuple(float(part[at].min()) for part in parts)
        highs = tuple(float(part[at].max()) for part in parts)
        summary = Summary(len(at), len(scored) > self._capacity, shed, lows, highs)
        return np.concatenate([scored[order], waiting]), summary

    def _table(
        self,
        found: Found,
        keys: pa.DictionaryArray,
        parts: tuple[FloatArray, ...],
        kept: list[tuple[int, int, IntArray, IntArray]],
        summaries: list[Summary],
    ) -> pa.Table:
        at = np.concatenate([np.empty(0, dtype=np.int64), *(rows for _, _, rows, _ in kept)])
        sizes = [len(rows) for _, _, rows, _ in kept]
        some = found.take(at)
        columns = {
            FIRST: np.repeat([first for first, _, _, _ in kept], sizes).astype(np.int64),
            LAST: np.repeat([last for _, last, _, _ in kept], sizes).astype(np.int64),
            ROLE: np.concatenate([np.empty(0, dtype=np.int64), *(roles for _, _, _, roles in kept)]),
            TIME: pa.array(some.times),
            IDENTITY: some.subjects,
            KEY: keys.take(pa.array(at)).cast(pa.string()),
            **{term_column(name): some.terms(name) for name in self._terms},
            **{
                number_column(name): pa.array(part[at])
                for name, part in zip(self._score.stream_variables, parts, strict=True)
            },
        }
        said = json.dumps([asdict(each) for each in summaries]).encode()
        return pa.table(columns).replace_schema_metadata({_PANES: said})


def best_of(table: pa.Table, numbers: tuple[str, ...], terms: tuple[str, ...]) -> Iterator[Best]:
    """Yield the panes of a table that a :class:`PaneBest` has made."""
    summaries = json.loads(table.schema.metadata[_PANES])
    firsts, lasts = (np.array(table.column(name)) for name in (FIRST, LAST))
    roles = np.array(table.column(ROLE))
    for (first, last, at), said in zip(runs_of(firsts, lasts), summaries, strict=True):
        summary = Summary(said["count"], said["let_go"], said["shed"], tuple(said["lows"]), tuple(said["highs"]))
        rows = table.slice(at.start, at.stop - at.start)
        candidates = rows.filter(pa.array(roles[at] & _CANDIDATE != 0))
        sample = rows.filter(pa.array(roles[at] & _SAMPLE != 0))
        yield Best(first, last, _rows(candidates, numbers, terms), _rows(sample, numbers, ()), summary)


def _rows(table: pa.Table, numbers: tuple[str, ...], terms: tuple[str, ...]) -> Rows:
    columns = (objects(table.column(name).to_pylist()) for name in (IDENTITY, KEY, *map(term_column, terms)))
    identities, keys, *carried = columns
    parts = tuple(np.array(table.column(number_column(name))) for name in numbers)
    return Rows(np.array(table.column(TIME)), identities, keys, parts, tuple(carried))


def _sample(count: int, room: int, seed: int) -> IntArray:
    """Return which of a pane's events to hand on: all of a few, else some, the same whenever they are chosen."""
    if count <= room:
        return np.arange(count)
    random = np.random.default_rng((seed & (2**63 - 1), count))
    return np.unique(random.integers(0, count, room))


class _Identities:
    """A column of texts, made only where ties are to be broken by them."""

    def __init__(self, found: Found, at: IntArray) -> None:
        self._subjects = found.subjects
        self._at = at

    def __getitem__(self, at: IntArray | BoolArray | slice) -> AnyArray:
        return objects(self._subjects.take(pa.array(self._at[at])).to_pylist())
