"""Reducer for many queries: keeps every row that any of them could still return."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.capacity import beyond
from acquatop.ingest.found import Found
from acquatop.ingest.match import Matcher
from acquatop.ingest.reduce.identities import TieIdentities
from acquatop.ingest.scoring import BoolArray, ReplicaScoring
from acquatop.ingest.solution_columns import IDENTITY, term_column
from acquatop.ingest.unscored import objects
from acquatop.topk.contract import FloatArray, IntArray, Rows
from acquatop.topk.pane_top import Scored
from acquatop.topk.shared.periodic_times import PeriodicTimes, first_from
from acquatop.topk.shared.skyline import best_of_panes, undominated_within
from connectors.mapping import BAD, TIME
from rspql.plan import Score

MERIT = "merit"
_PANES = b"panes"


@dataclass(frozen=True)
class SharedRequirements:
    """Common needs of queries: the largest ``k``, and the width of the ``narrowest`` window.

    Integers up to ``capacity`` give scores with all digits.
    ``boundaries`` are the times at which their windows open and close; a window has already closed
    at ``closed_ms``.
    """

    k: int
    narrowest: int
    boundaries: Sequence[PeriodicTimes]
    closed_ms: int
    capacity: float = math.inf


@dataclass(frozen=True)
class Panes:
    """Panes that hold a good record, in time order: stretches between two boundaries of any query.

    Each has the time of its newest record, its number of solutions, and how many of them have no
    score, or a score with more digits than are computed.
    """

    times: IntArray
    solutions: IntArray
    unscored: IntArray
    inexact: IntArray

    def take(self, at: IntArray | slice) -> Panes:
        """Return some of the panes."""
        return Panes(self.times[at], self.solutions[at], self.unscored[at], self.inexact[at])


class SharedBest:
    """Reducer that keeps what can be among the best k of any window, with the panes' counts.

    At most the best k of each pane are kept. If a partition holds many panes, about 2k·(2 +
    log2(n/k)) rows are kept of n that came within the width of the narrowest window, in random
    order. Rows that may be too late for some queries are not compared with other panes. O(n log n),
    or O(n) if records are in order.
    """

    windows = None

    def __init__(
        self, matcher: Matcher, score: Score, needs: SharedRequirements, terms: tuple[str, ...]
    ) -> None:
        self.matcher = matcher
        self._score = score
        self._needs = needs
        self._terms = terms

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the rows kept, in time order, with the panes in the schema's metadata."""
        assert found is not None
        parts = tuple(found.numbers(name) for name in self._score.stream_variables)
        merits = ReplicaScoring(self._score, None).merits_at(np.arange(len(found)), parts)
        is_scored = ~np.isnan(merits)
        at = self._kept(found, merits, is_scored.nonzero()[0])
        some = found.take(at)
        columns = {
            TIME: pa.array(some.times),
            IDENTITY: some.subjects,
            MERIT: pa.array(merits[at]),
            **{term_column(name): some.terms(name) for name in self._terms},
        }
        said = json.dumps(
            self._panes(
                records, found.times, is_scored, beyond(self._score, self._needs.capacity, parts)
            )
        ).encode()
        return pa.table(columns).replace_schema_metadata({_PANES: said})

    def _kept(self, found: Found, merits: FloatArray, at: IntArray) -> IntArray:
        """Return the positions of the rows kept, in time order."""
        needs = self._needs
        if (np.diff(found.times[at]) < 0).any():
            at = at[np.argsort(found.times[at], kind="stable")]
        ends = first_from(needs.boundaries, found.times[at])
        stays = [np.arange(np.searchsorted(found.times[at], needs.closed_ms, side="right"))]
        for start, stop in self._stretches(found.times[at], len(stays[0])):
            stays.append(
                start + undominated_within(merits[at[start:stop]], ends[start:stop], needs.k)
            )
        left = np.concatenate(stays)
        at, ends = at[left], ends[left]
        identities = TieIdentities(found, at)
        return at[best_of_panes(needs.k, merits[at], found.times[at], identities, ends)]

    def _stretches(self, times: IntArray, start: int) -> Iterator[tuple[int, int]]:
        """Yield the start and end of stretches that are no longer than the narrowest window."""
        while start < len(times):
            stop = int(np.searchsorted(times, times[start] + self._needs.narrowest, side="right"))
            yield start, stop
            start = stop

    def _panes(
        self,
        records: pa.RecordBatch,
        times: IntArray,
        is_scored: BoolArray,
        inexact: BoolArray | None,
    ) -> list[list[int]]:
        of_records = np.sort(
            records.column(TIME).filter(pc.is_null(records.column(BAD))).drop_null().to_numpy()
        )
        ends = first_from(self._needs.boundaries, of_records)
        newest = of_records[np.flatnonzero(np.diff(ends, append=ends[-1:] + 1))]
        pane_of = np.searchsorted(newest, times, side="left")
        solutions = np.bincount(pane_of, minlength=len(newest))
        unscored = np.bincount(pane_of[~is_scored], minlength=len(newest))
        of_inexact = pane_of[:0] if inexact is None else pane_of[inexact]
        lacking = np.bincount(of_inexact, minlength=len(newest))
        return [newest.tolist(), solutions.tolist(), unscored.tolist(), lacking.tolist()]


def panes_of(table: pa.Table) -> Panes:
    """Return the panes of a table that was made by :class:`SharedBest`."""
    return Panes(
        *(np.array(each, dtype=np.int64) for each in json.loads(table.schema.metadata[_PANES]))
    )


def scored_of(table: pa.Table, terms: tuple[str, ...]) -> Scored:
    """Return the rows of a table that was made by :class:`SharedBest`."""
    merits = np.array(table.column(MERIT))
    identities, *carried = (
        objects(table.column(name).to_pylist()) for name in (IDENTITY, *map(term_column, terms))
    )
    return Scored(
        merits,
        Rows(np.array(table.column(TIME)), identities, identities, (merits,), tuple(carried)),
    )
