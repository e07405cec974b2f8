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
from acquatop.operators.reduce.panes import Positions, by_pane, runs_of
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
        merits, waits = self._merits(found)
        kept: list[tuple[int, int, IntArray, IntArray]] = []
        summaries: list[Summary] = []
        for (first, last, at), numbers in zip(self._panes(found), self._ranges(found), strict=True):
            count = len(found.times[at])
            chosen, let_go, shed = self._chosen(found, merits, at, waits)
            sample = _positions(at, _sample(count, self._sampled, first))
            rows = np.union1d(chosen, sample)
            roles = _CANDIDATE * np.isin(rows, chosen) + _SAMPLE * np.isin(rows, sample)
            kept.append((first, last, rows, roles))
            lows, highs = zip(*numbers, strict=True) if numbers else ((), ())
            summaries.append(Summary(count, let_go, shed, lows, highs))
        return self._table(found, kept, summaries)

    # What queries with the same pattern have in common is made for the first of them ---------------

    def _panes(self, found: Found) -> list[tuple[int, int, Positions]]:
        return found.made(("panes", self.windows), lambda: list(by_pane(self.windows, found.times)))

    def _ranges(self, found: Found) -> list[tuple[tuple[float, float], ...]]:
        """Return for each pane the least and the greatest of each of the score's numbers."""
        names = self._score.stream_variables

        def ranges() -> list[tuple[tuple[float, float], ...]]:
            of_panes = [[found.numbers(name)[at] for name in names] for _, _, at in self._panes(found)]
            return [tuple((float(each.min()), float(each.max())) for each in numbers) for numbers in of_panes]

        return found.made(("ranges", self.windows, names), ranges)

    def _merits(self, found: Found) -> tuple[FloatArray, BoolArray | None]:
        """Return each one's merit, and where there is none, if that is anywhere."""
        parts = tuple(found.numbers(name) for name in self._score.stream_variables)
        remote: dict[str, FloatArray] = {}
        absent: BoolArray | None = None
        if self._view is not None:
            view = self._view
            remote = {name: self._joined(found, view, name) for name in self._score.remote_variables}
            absent = found.made(("absent", id(view)), lambda: self._absent(found, view))
        merits = ReplicaScoring(self._score, self._view).merits_given(remote, parts, len(found))
        if absent is not None:
            merits[absent] = np.nan
        waits = np.isnan(merits)
        return merits, waits if waits.any() else None

    def _joined(self, found: Found, view: ReplicaView, name: str) -> FloatArray:
        return found.made(("joined", id(view), name), lambda: view.numbers(name, self._rows(found, view)))

    def _absent(self, found: Found, view: ReplicaView) -> BoolArray | None:
        absent = ~view.present(self._rows(found, view))
        return absent if absent.any() else None

    @staticmethod
    def _rows(found: Found, view: ReplicaView) -> IntArray:
        """Return the row that the replica has each one's key in."""
        keys = found.keys
        return found.made(("rows", id(view)), lambda: view.rows(keys.dictionary)[keys.indices.to_numpy()])

    def _chosen(
        self, found: Found, merits: FloatArray, at: Positions, waits: BoolArray | None
    ) -> tuple[IntArray, bool, bool]:
        """Return which of a pane to keep, and whether any with a merit, and any without, are left out."""
        if waits is None:
            order = best(self._capacity, merits[at], found.times[at], _Identities(found, at))  # type: ignore[arg-type]
            return _positions(at, order), len(merits[at]) > self._capacity, False
        scored = _positions(at, np.flatnonzero(~waits[at]))
        waiting = _positions(at, np.flatnonzero(waits[at]))
        times = found.times
        order = best(self._capacity, merits[scored], times[scored], _Identities(found, scored))  # type: ignore[arg-type]
        shed = len(waiting) > LIMIT
        if shed:
            waiting = waiting[np.lexsort((waiting, -times[waiting]))[:LIMIT]]
        return np.concatenate([scored[order], waiting]), len(scored) > self._capacity, shed

    def _table(
        self,
        found: Found,
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
            KEY: found.keys.take(pa.array(at)).cast(pa.string()),
            **{term_column(name): some.terms(name) for name in self._terms},
            **{number_column(name): pa.array(found.numbers(name)[at]) for name in self._score.stream_variables},
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


def _positions(at: Positions, chosen: IntArray) -> IntArray:
    """Return where some of a pane's rows are, which are given by their places in it."""
    return chosen + at.start if isinstance(at, slice) else at[chosen]


class _Identities:
    """A column of texts, made only where ties are to be broken by them."""

    def __init__(self, found: Found, at: Positions) -> None:
        self._found = found
        self._at = at

    def __getitem__(self, chosen: IntArray) -> AnyArray:
        at = _positions(self._at, chosen)
        return objects(self._found.subjects.take(pa.array(at)).to_pylist())
