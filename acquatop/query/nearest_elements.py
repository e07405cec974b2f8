"""Evaluation of many queries for the nearest of a stream's last elements, on one grid."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from acquatop.answer.answer import Answer
from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.job import reduced
from acquatop.ingest.reduce.late_finder import AnsweredSoFar
from acquatop.ingest.reduce.records import RECORDS
from acquatop.ingest.reduce.solutions import Solutions, solutions_in
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.ingest.solution_columns import number_column
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery
from acquatop.query.contract import Sizes, Tick
from acquatop.query.element_answers import count_between
from acquatop.query.element_positions import Positions, answered_until
from acquatop.query.nearest_member import NearestMember
from acquatop.query.solution_terms import SolutionTerms
from acquatop.topk.contract import FloatArray, IntArray
from acquatop.topk.sliding.nearest import NearestQueries
from acquatop.topk.snapshot import (
    State,
    pack,
    pack_parts,
    pack_table,
    reading,
    unpack,
    unpack_parts,
    unpack_table,
)
from connectors.mapping import TIME
from replica.clocks import Clock
from rspql.ast import XSD

_KIND, _VERSION = "nearest elements", 1


class NearestElements:
    """Queries over the last n elements of a stream that rank by distances to points of their own.

    They differ in these points, in k and in what they show. Elements are counted, matched and
    placed once for all of them; an element then costs something for each query that it may be
    among the nearest of. Each query has the answers of
    :class:`~acquatop.query.count_windows.CountedEvaluation`. Memory is that of the last n elements
    with their terms. Not thread-safe.
    """

    def __init__(
        self, bound: BoundCounted, *, clock: Clock = time.monotonic, wall_clock: Clock = time.time
    ) -> None:
        assert isinstance(bound.query, BoundQuery)
        assert bound.nearest is not None
        self.slide_ms = math.inf
        self.members: dict[str, NearestMember] = {}
        self._query = bound.query
        self._distance = bound.nearest
        self._clocks = clock, wall_clock
        self._positions = Positions(bound.counted_elements, bound.stream.start_ms)
        self._scoring = ReplicaScoring(bound.query.plan.score, None)
        self._whole = [
            name
            for name in bound.query.plan.score.stream_variables
            if bound.query.plan.score.datatypes.get(name) == XSD + "integer"
        ]
        self._terms = SolutionTerms(bound.query.plan.stream_variables)
        self._unscored: IntArray = np.empty(0, dtype=np.int64)
        self._structure = self._empty()
        self._base = 1
        """Position of the first element that the structure has seen."""
        self._window: FloatArray | None = None
        """Points of a snapshot, until its queries have joined."""
        self._resumed: Mapping[str, bytes] = {}

    def _empty(self) -> NearestQueries:
        distance = self._distance
        width = self._query.windows.width_ms
        return NearestQueries(len(distance.variables), width, is_root=distance.is_root)

    # Queries come and go --------------------------------------------------------------------------

    @property
    def names(self) -> Sequence[str]:
        """Names of the queries."""
        return list(self.members)

    def join(self, bound: Bound, after_ms: Mapping[str, int]) -> None:
        """Add a query, whose first element is the first after a time."""
        since_ms = max(after_ms.values(), default=None)
        if not self.members and since_ms is not None:
            self._positions.start_after(since_ms)
        member = self._member(bound, since_ms)
        if since_ms is None:
            self._begin(member, self._positions.count + 1)

    def resume_query(self, bound: Bound) -> bool:
        """Continue a query of the snapshot."""
        part = self._resumed.get(f"member {bound.name}")
        if part is None:
            return False
        member = self._member(bound, None)
        member.resume(part)
        if member.first is not None:
            since = max(0, member.first - self._base)
            member.number = self._structure.join(member.centre, member.k, since)
        return True

    def _member(self, bound: Bound, since_ms: int | None) -> NearestMember:
        assert isinstance(bound, BoundCounted)
        clock, wall_clock = self._clocks
        member = self.members[bound.name] = NearestMember(
            bound, self._positions, since_ms, clock=clock, wall_clock=wall_clock
        )
        return member

    def _begin(self, member: NearestMember, first: int) -> None:
        self._restore()
        member.begin(first)
        member.number = self._structure.join(member.centre, member.k)

    def _restore(self) -> None:
        """Give the points of a snapshot to its queries, which have all joined."""
        window, self._window = self._window, None
        if window is not None:
            self._structure.add(window)

    def leave(self, name: str) -> None:
        """Stop answering a query."""
        member = self.members.pop(name, None)
        if member is not None and member.first is not None:
            self._structure.leave(member.number)

    def close(self) -> None:
        """Do nothing: there are no other resources."""

    def sizes(self, name: str) -> Sizes:
        """Return the number of solutions that are held for all queries."""
        return Sizes(len(self._terms))

    # Elements in ----------------------------------------------------------------------------------

    def windows(self, stream: str) -> Sequence[AnsweredSoFar]:
        """Return a window for each millisecond: an event is late once its millisecond is over."""
        return [answered_until(self._positions)]

    def due_after(self, stream: str, time_ms: int) -> int | None:
        """Return the time at which the first waiting element gets its position."""
        earliest = self._positions.earliest_ms
        return None if earliest is None else max(earliest, time_ms + 1)

    def reducers(self, stream: str) -> Sequence[Reducer]:
        """Return the reducer that keeps all records."""
        return [RECORDS]

    def reducers_ahead(self, stream: str, watermark_ms: int) -> Sequence[Reducer]:
        """Return the same."""
        return self.reducers(stream)

    def add(self, stream: str, parts: Sequence[Part], names: Sequence[str]) -> None:
        """Buffer records until they get their positions."""
        facts = parts[0].facts
        for member in self.members.values():
            member.counters.note(facts.events, facts.bad or {})
        for batch in parts[0].table.to_batches():
            late = self._positions.add(batch)
            for member in self.members.values() if len(late) else ():
                member.note_late(late)

    # Answers out ----------------------------------------------------------------------------------

    def advance(self, tick: Tick) -> Iterator[Answer]:
        """Yield the answers of windows that close with an element up to the watermark."""
        return self._go_on(tick.watermark_ms, tick.due_at)

    def finish(self, stream: str) -> Iterator[Answer]:
        """Yield the answers of the windows that close with an element that has come."""
        return self._go_on(None, self._clocks[0]())

    def _go_on(self, until_ms: int | None, due_at: float) -> Iterator[Answer]:
        self._restore()
        elements = self._positions.take_until(until_ms)
        if elements is None:
            return
        (part,) = reduced(elements, [Solutions(self._query.matcher, None)])
        self._place(part)
        for member in list(self.members.values()):
            for answer in member.until(self._positions.count, due_at, self):
                if answer.query in self.members:
                    yield answer
        self._trim()

    def _place(self, part: Part) -> None:
        """Give the next elements to the structure; queries begin with their first of them."""
        assert part.facts.earliest_ms is not None, "an element has a position"
        start = part.facts.earliest_ms
        points = self._points(part, start)
        at = 0
        for first, member in sorted(self._beginners(start), key=lambda each: each[0]):
            self._add(points[at : first - start])
            at = first - start
            self._begin(member, first)
        self._add(points[at:])

    def _beginners(self, start: int) -> Iterator[tuple[int, NearestMember]]:
        """Yield the queries that begin with one of the elements from a position on."""
        for member in self.members.values():
            if member.first is None:
                assert member.since_ms is not None
                first = max(start, self._positions.first_after(member.since_ms))
                if first <= self._positions.count:
                    yield first, member

    def _points(self, part: Part, start: int) -> FloatArray:
        """Return the points of elements from a position on; NaN where there is no score."""
        solutions = solutions_in(self._query.matcher, part.table)
        positions = np.asarray(solutions.column(TIME).to_numpy())
        score = self._query.plan.score
        numbers = {
            name: solutions.column(number_column(name)).to_numpy()
            for name in score.stream_variables
        }
        has_none = np.isnan(self._scoring.merits(positions, tuple(numbers.values())))
        points = np.full((part.facts.events, len(self._distance.variables)), np.nan)
        for axis, name in enumerate(self._distance.variables):
            points[positions - start, axis] = numbers[name]
        points[positions[has_none] - start] = np.nan
        self._terms.add(solutions)
        self._unscored = np.concatenate((self._unscored, positions[has_none]))
        if self._whole and len(positions):
            sizes = (np.abs(numbers[name]) for name in self._whole)
            greatest = max(float(np.fmax.reduce(each, initial=0.0)) for each in sizes)
            for member in self.members.values():
                member.note_numbers(positions, tuple(numbers.values()), greatest)
        return points

    def _add(self, points: FloatArray) -> None:
        changes = self._structure.add(points)
        members = {member.number: member for member in self.members.values()}
        for query, own in changes.each():
            members[query].note(own, self._base)

    def _trim(self) -> None:
        """Drop what no later window holds."""
        width = self._query.windows.width_ms
        opens = min(
            (each.next_open for each in self.members.values() if each.next_open is not None),
            default=self._positions.count,
        )
        self._unscored = self._unscored[np.searchsorted(self._unscored, opens, "right") :]
        first = max(1, self._positions.count + 1 - width)
        self._terms.trim(lambda: np.arange(first, self._positions.count + 1))

    def terms(self, position: int) -> Mapping[str, str]:
        """Return the N-Triples terms of a solution in the window, by variable."""
        return self._terms.terms(position)

    def unscored(self, opens: int, closes: int) -> int:
        """Return the number of solutions without a score between two positions."""
        return count_between(self._unscored, opens, closes)

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    def snapshot(self) -> bytes:
        """Return the whole state. O(n)."""
        self._restore()
        window = self._structure.window()[self._structure.n - len(self._structure) :]
        columns = {str(axis): window[:, axis] for axis in range(window.shape[1])}
        state = State({}, {"window": columns, "unscored": {"positions": self._unscored}})
        parts = {
            "state": pack(_KIND, _VERSION, state),
            "positions": self._positions.snapshot(),
            **{f"member {name}": each.snapshot() for name, each in self.members.items()},
        }
        if len(self._terms):
            parts["held"] = pack_table(self._terms.table())
        return pack_parts(parts)

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot, before any query joins; raises ``SnapshotError`` for other bytes."""
        with reading():
            parts = unpack_parts(snapshot)
            self._positions.resume(parts["positions"])
            tables = unpack(_KIND, _VERSION, parts["state"]).tables
            columns = tables["window"]
            self._window = np.column_stack([columns[str(axis)] for axis in range(len(columns))])
            self._unscored = tables["unscored"]["positions"]
            self._base = self._positions.count + 1 - len(self._window)
            if "held" in parts:
                self._terms.resume(unpack_table(parts["held"]))
            self._resumed = parts
