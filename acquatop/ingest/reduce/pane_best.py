"""Best k + n of each pane, for arrivals that replace nothing: no other can matter for known values.

The ranges of the pane's numbers are kept too. They bound the merits that rows left out could have
once values change.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from acquatop.ingest.found import Found
from acquatop.ingest.match import Matcher
from acquatop.ingest.reduce.block_merits import BlockValues
from acquatop.ingest.reduce.pane_choice import Chosen, PaneChoice
from acquatop.ingest.reduce.panes import Positions, by_pane, runs_of, within
from acquatop.ingest.reduce.replica_view import ReplicaView
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.ingest.solution_columns import IDENTITY, KEY, number_column, term_column
from acquatop.ingest.unscored import objects
from acquatop.topk.contract import FloatArray, IntArray, Rows
from acquatop.windows import Windows
from connectors.mapping import TIME
from rspql.plan import Score

FIRST, LAST = "first", "last"
_PANES, _PLACES = b"panes", b"places"


@dataclass(frozen=True)
class PaneRequest:
    """Request of one query for each pane: the best ``capacity`` by its score."""

    score: Score
    capacity: int


@dataclass(frozen=True)
class PaneSummary:
    """Facts about the rows of a pane that were left out for a query.

    ``let_go`` says whether scored rows were left out, ``shed`` whether others were. ``lows`` and
    ``highs`` are the ranges of all the pane's numbers.
    """

    let_go: bool
    shed: bool
    lows: tuple[float, ...]
    highs: tuple[float, ...]


@dataclass(frozen=True)
class PaneCandidates:
    """Candidates of one query in one pane of one partition, and facts about the rows left out."""

    first: int
    last: int
    candidates: Rows
    summary: PaneSummary


@dataclass(frozen=True)
class PaneFound:
    """Pane of one partition: its number of events, a sample of them, and each query's best."""

    first: int
    last: int
    count: int
    sample: Rows
    bests: Sequence[PaneCandidates]


@dataclass(frozen=True)
class _Kept:
    """Rows kept of a pane: their positions, and the places among them of what each consumer wants.

    The consumers are first the sample, then each query; ``sizes`` are their numbers of rows.
    ``left_out`` says for each query whether scored rows, and whether others, were left out.
    """

    first: int
    last: int
    count: int
    rows: IntArray
    places: IntArray
    sizes: list[int]
    left_out: list[tuple[bool, bool]]
    ranges: tuple[tuple[float, float], ...]


class PaneBest:
    """Reducer that keeps each pane's best by the replica's values, and rows without a score.

    It serves several queries that score by the same numbers and show the same ``terms``; a row that
    several keep is sent once. Of the rows without a score the newest 10 000 are kept. ``sampled``
    rows of a pane are passed on whatever their merits. O(events) for each query, and for each but
    the first some 2 ns.
    """

    def __init__(
        self,
        matcher: Matcher,
        windows: Windows,
        asked: Sequence[PaneRequest],
        *,
        numbers: tuple[str, ...],
        terms: tuple[str, ...],
        view: ReplicaView | None,
        sampled: int,
    ) -> None:
        self.matcher = matcher
        self.windows = windows
        self._asked = asked
        self._numbers = numbers
        self._terms = terms
        self._view = view
        self._sampled = sampled

    def reduce(self, records: pa.RecordBatch, found: Found | None) -> pa.Table:
        """Return the rows kept, pane by pane; the schema's metadata tells each query's rows."""
        assert found is not None
        values = BlockValues(found, self._numbers, self._view)
        scorings = [ReplicaScoring(each.score, self._view) for each in self._asked]
        kept = []
        for first, last, at in by_pane(self.windows, found.times):
            choices = [PaneChoice(each.capacity) for each in self._asked]
            for start, block in values.blocks(at, len(found.times[at])):
                for choice, scoring in zip(choices, scorings, strict=True):
                    choice.add(start, block.merits(scoring))
            chosen = [choice.of(found, at) for choice in choices]
            kept.append(self._kept(found, (first, last, at), chosen))
        return self._table(found, [each for each in kept if len(each.rows)])

    def _kept(
        self,
        found: Found,
        pane: tuple[int, int, Positions],
        chosen: Sequence[Chosen],
    ) -> _Kept:
        first, last, at = pane
        count = len(found.times[at])
        wanted = [
            within(at, _sample(count, self._sampled, first)),
            *(np.sort(each.rows) for each in chosen),
        ]
        together = np.concatenate(wanted)
        rows = np.unique(together)
        columns = [found.numbers(name)[at] for name in self._numbers]
        ranges = tuple(map(_range, columns))
        return _Kept(
            first,
            last,
            count,
            rows,
            np.searchsorted(rows, together),
            list(map(len, wanted)),
            [(each.let_go, each.shed) for each in chosen],
            ranges,
        )

    # Tables, written and read ---------------------------------------------------------------------

    def _table(self, found: Found, kept: list[_Kept]) -> pa.Table:
        at = np.concatenate([np.empty(0, dtype=np.int64), *(each.rows for each in kept)])
        sizes = [len(each.rows) for each in kept]
        some = found.take(at)
        columns = {
            FIRST: np.repeat([each.first for each in kept], sizes).astype(np.int64),
            LAST: np.repeat([each.last for each in kept], sizes).astype(np.int64),
            TIME: pa.array(some.times),
            IDENTITY: some.subjects,
            KEY: found.keys.take(pa.array(at)).cast(pa.string()),
            **{term_column(name): some.terms(name) for name in self._terms},
            **{number_column(name): pa.array(found.numbers(name)[at]) for name in self._numbers},
        }
        said = [[each.count, each.sizes, each.left_out, each.ranges] for each in kept]
        places = np.concatenate([np.empty(0, dtype=np.int64), *(each.places for each in kept)])
        metadata = {_PANES: json.dumps(said).encode(), _PLACES: places.tobytes()}
        return pa.table(columns).replace_schema_metadata(metadata)


def _range(numbers: FloatArray) -> tuple[float, float]:
    """Return the least and the greatest of some numbers; those that are unbound are NaN."""
    known = numbers[~np.isnan(numbers)]
    return (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)


def panes_in(
    table: pa.Table, numbers: tuple[str, ...], terms: tuple[str, ...]
) -> Iterator[PaneFound]:
    """Yield the panes of a table that was made by :class:`PaneBest`."""
    said = json.loads(table.schema.metadata[_PANES])
    places, start = np.frombuffer(table.schema.metadata[_PLACES], np.int64), 0
    firsts, lasts = (np.array(table.column(name)) for name in (FIRST, LAST))
    rows = _rows(table, numbers, terms)
    for (first, last, at), (count, sizes, left_out, ranges) in zip(
        runs_of(firsts, lasts), said, strict=True
    ):
        ends = start + np.cumsum(sizes)
        own = rows.take(at)
        sample, *candidates = (
            own.take(each) for each in np.split(places[start : ends[-1]], ends[:-1] - start)
        )
        lows, highs = (tuple(each) for each in zip(*ranges, strict=True)) if ranges else ((), ())
        bests = [
            PaneCandidates(first, last, its, PaneSummary(let_go, shed, lows, highs))
            for its, (let_go, shed) in zip(candidates, left_out, strict=True)
        ]
        start = int(ends[-1])
        yield PaneFound(
            first,
            last,
            count,
            Rows(sample.times, sample.identities, sample.keys, sample.parts),
            bests,
        )


def _rows(table: pa.Table, numbers: tuple[str, ...], terms: tuple[str, ...]) -> Rows:
    columns = (
        objects(table.column(name).to_pylist())
        for name in (IDENTITY, KEY, *map(term_column, terms))
    )
    identities, keys, *carried = columns
    parts = tuple(np.array(table.column(number_column(name))) for name in numbers)
    return Rows(np.array(table.column(TIME)), identities, keys, parts, tuple(carried))


def _sample(count: int, room: int, seed: int) -> IntArray:
    """Return the events of a pane to pass on: all of a few, else a sample, always the same one."""
    if count <= room:
        return np.arange(count)
    random = np.random.default_rng((seed & (2**63 - 1), count))
    return np.unique(random.integers(0, count, room))
