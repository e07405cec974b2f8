"""Reducer for many queries that rank by distances to points of their own: each pane's nearest."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.found import Found
from acquatop.ingest.match import Matcher
from acquatop.ingest.reduce.panes import by_pane, within
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.ingest.solution_columns import IDENTITY, number_column, term_column
from acquatop.ingest.unscored import objects
from acquatop.topk.contract import FloatArray, IntArray, Rows
from acquatop.topk.sliding.kth_distance import kth_squares, with_ties
from acquatop.topk.sliding.query_grid import (
    FEW,
    Box,
    NoGrid,
    Pairs,
    QueryGrid,
    cells_per_axis,
)
from acquatop.windows import Windows
from connectors.mapping import TIME
from rspql.plan import Score
from rspql.scoring.distance import Distance

_PANES, _PAIRS = b"panes", b"pairs"
_PAIR = np.dtype([("query", np.int32), ("place", np.int32), ("merit", np.float64)])


@dataclass(frozen=True)
class NearestRequest:
    """Request of one query for each pane: the ``k`` nearest to a centre."""

    centre: tuple[float, ...]
    k: int


@dataclass(frozen=True)
class NearestPane:
    """Pane of one partition: its number of solutions, and of those without a score; the nearest.

    Pairs of queries, by their places among the requests, and rows, by theirs, with their merits.
    ``lows`` and ``highs`` are the ranges of all the pane's numbers.
    """

    first: int
    last: int
    count: int
    unscored: int
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    rows: Rows
    queries: IntArray
    places: IntArray
    merits: FloatArray


class NearestBest:
    """Reducer that keeps of each pane the k nearest to each query's centre, and ties with the last.

    A row that several keep is sent once. ``score`` is that of any of the queries: they agree in the
    rows that have one.
    """

    def __init__(
        self,
        matcher: Matcher,
        windows: Windows,
        asked: Sequence[NearestRequest],
        *,
        score: Score,
        distance: Distance,
        terms: tuple[str, ...],
    ) -> None:
        self.matcher = matcher
        self.windows = windows
        self._score = score
        self._distance = distance
        self._terms = terms
        axes = len(distance.variables)
        self._centres = np.array([each.centre for each in asked], dtype=np.float64)
        self._centres = self._centres.reshape(-1, axes)
        self._ks = np.array([each.k for each in asked], dtype=np.int64)

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the rows kept, pane by pane; the schema's metadata tells each query's rows."""
        assert found is not None
        numbers = tuple(found.numbers(name) for name in self._score.stream_variables)
        merits = ReplicaScoring(self._score, None).merits_at(np.arange(len(found)), numbers)
        points = np.column_stack([found.numbers(name) for name in self._distance.variables])
        has_score = ~np.isnan(merits)
        said, rows = [], [np.empty(0, dtype=np.int64)]
        pairs = []
        for first, last, at in by_pane(self.windows, found.times):
            scored = within(at, np.flatnonzero(has_score[at]))
            queries, places, best = self._nearest(points[scored], found.times[scored])
            own, of = np.unique(places, return_inverse=True)
            rows.append(scored[own])
            packed = np.empty(len(queries), dtype=_PAIR)
            packed["query"], packed["place"], packed["merit"] = queries, of, best
            pairs.append(packed.tobytes())
            count = len(found.times[at])
            ranges = [_range(column[at]) for column in numbers]
            said.append([first, last, count, count - len(scored), len(own), len(packed), ranges])
        metadata = {_PANES: json.dumps(said).encode(), _PAIRS: b"".join(pairs)}
        return self._table(found, np.concatenate(rows)).replace_schema_metadata(metadata)

    def _table(self, found: Found, at: IntArray) -> pa.Table:
        some = found.take(at)
        columns = {
            TIME: pa.array(some.times),
            IDENTITY: some.subjects,
            **{term_column(name): some.terms(name) for name in self._terms},
            **{
                number_column(name): pa.array(found.numbers(name)[at])
                for name in self._score.stream_variables
            },
        }
        return pa.table(columns)

    def _nearest(
        self, points: FloatArray, times: IntArray
    ) -> tuple[IntArray, IntArray, FloatArray]:
        """Return queries with their nearest points, and what ties with the last, and the merits."""
        pairs = self._near(points)
        merits = -np.sqrt(pairs.squares) if self._distance.is_root else -pairs.squares
        order = np.lexsort((-times[pairs.points], -merits, pairs.queries))
        queries, places, merits = pairs.queries[order], pairs.points[order], merits[order]
        starts, ends = (
            np.searchsorted(queries, np.arange(len(self._ks)), side=side)
            for side in ("left", "right")
        )
        last = np.minimum(starts + self._ks, ends) - 1
        ties = (merits == merits[last[queries]]) & (times[places] == times[places][last[queries]])
        kept = ((np.arange(len(queries)) <= last[queries]) | ties).nonzero()[0]
        return queries[kept], places[kept], merits[kept]

    def _near(self, points: FloatArray) -> Pairs:
        """Return pairs of all queries with at least their k nearest of some points."""
        squares = np.full(len(self._ks), np.inf)
        some = (self._ks <= len(points)).nonzero()[0]
        box = Box.around(points, cells_per_axis(points.shape[1]))
        if len(some):
            squares[some] = kth_squares(self._centres[some], self._ks[some], points, box)
        squares = with_ties(squares, is_root=self._distance.is_root)
        few = len(self._ks) <= FEW
        grid = NoGrid(self._centres) if few else QueryGrid(self._centres, squares, box)
        return grid.pairs(points, squares)


def nearest_panes(
    table: pa.Table, numbers: tuple[str, ...], terms: tuple[str, ...]
) -> Iterator[NearestPane]:
    """Yield the panes of a table that was made by :class:`NearestBest`."""
    pairs = np.frombuffer(table.schema.metadata[_PAIRS], _PAIR)
    rows, row, pair = _rows(table, numbers, terms), 0, 0
    for first, last, count, unscored, kept, paired, ranges in json.loads(
        table.schema.metadata[_PANES]
    ):
        own = pairs[pair : pair + paired]
        lows, highs = zip(*ranges, strict=True)
        yield NearestPane(
            first,
            last,
            count,
            unscored,
            lows,
            highs,
            rows.take(slice(row, row + kept)),
            own["query"].astype(np.int64),
            own["place"].astype(np.int64),
            own["merit"].copy(),
        )
        row, pair = row + kept, pair + paired


def _rows(table: pa.Table, numbers: tuple[str, ...], terms: tuple[str, ...]) -> Rows:
    identities, *carried = (
        objects(table.column(name).to_pylist()) for name in (IDENTITY, *map(term_column, terms))
    )
    parts = tuple(np.array(table.column(number_column(name))) for name in numbers)
    return Rows(np.array(table.column(TIME)), identities, identities, parts, tuple(carried))


def _range(numbers: FloatArray) -> tuple[float, float]:
    """Return the least and the greatest of some numbers, infinite ones as well; not NaN."""
    known = numbers[~np.isnan(numbers)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
