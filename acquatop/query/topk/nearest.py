"""Content of queries over the same windows that rank by distances to points of their own."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction

import numpy as np

from acquatop.ingest.reduce.contract import Part, Reducer
from acquatop.ingest.reduce.nearest_best import NearestBest, NearestRequest, nearest_panes
from acquatop.ingest.scoring import ReplicaScoring
from acquatop.plan.bound import BoundQuery
from acquatop.query.contenders import Contenders, first_of
from acquatop.query.exactness import Exactness, Extents
from acquatop.query.pane_extents import PaneExtents
from acquatop.refresh.proposers.contract import NOTHING_PROPOSED
from acquatop.refresh.replica_refresh import Inquiry, Wanted
from acquatop.topk.contract import Certainty, Rows, Top
from acquatop.topk.dropped_bounds import LOST
from acquatop.topk.shared.pane_tops import PaneTops, WindowTops

_TOPS, _PANES, _EXTENTS = "tops", "panes of points", "extents"


class NearestContent:
    """Points of the open windows that may be among the nearest of any member.

    Reducers find each pane's nearest for all members on one grid, and a window's nearest are found
    for all of them at once.
    """

    def __init__(self, bound: BoundQuery) -> None:
        assert bound.nearest is not None
        self._bound = bound
        self._distance = bound.nearest
        self._tops = PaneTops()
        self._rankings: dict[str, NearestRanking] = {}
        self._joined = 0
        self._unscored: dict[tuple[int, int], int] = {}
        """Number of solutions without a score in each pane."""
        self._extents = PaneExtents(
            bound.plan.score.stream_variables, Exactness(bound.plan.score, None)
        )
        self._shown: tuple[int, WindowTops] | None = None
        """Candidates of the window that was asked for last."""

    # Members --------------------------------------------------------------------------------------

    def enrol(self, bound: BoundQuery) -> NearestRanking:
        """Return the ranking of one more member."""
        ranking = self._rankings[bound.name] = NearestRanking(bound, self, self._joined)
        self._joined += 1
        self._shown = None
        return ranking

    def leave(self, name: str) -> None:
        """Drop the ranking of a member."""
        ranking = self._rankings.pop(name, None)
        if ranking is not None:
            self._tops.leave(ranking.number)

    # Parts in -------------------------------------------------------------------------------------

    def reducers(self) -> Sequence[Reducer]:
        """Return the reducer that keeps the nearest of each pane."""
        plan = self._bound.plan
        asked = [NearestRequest(each.centre, each.k) for each in self._rankings.values()]
        return [
            NearestBest(
                self._bound.matcher,
                self._bound.windows,
                asked,
                score=plan.score,
                distance=self._distance,
                terms=plan.stream_variables,
            )
        ]

    def reducers_ahead(self, *, may_close: bool) -> Sequence[Reducer]:
        """Return the same: they depend on the queries alone."""
        return self.reducers()

    def add(self, part: Part, names: Sequence[str], closed: int | None) -> int:
        """Take in the nearest of each pane."""
        plan, late = self._bound.plan, 0
        rankings = [self._rankings.get(name) for name in names]
        numbers = np.array([-1 if each is None else each.number for each in rankings])
        score = plan.score.stream_variables
        for pane in nearest_panes(part.table, score, plan.stream_variables):
            if closed is not None and pane.first <= closed:
                late += pane.count
                for each in rankings:
                    if each is not None:
                        each.note_late(pane.last)
                continue
            span = pane.first, pane.last
            self._unscored[span] = self._unscored.get(span, 0) + pane.unscored
            self._extents.note_ranges(*span, pane.lows, pane.highs)
            self._tops.add(*span, pane.rows, numbers[pane.queries], pane.places, pane.merits)
            self._shown = None
        return late

    def complete(self, window: int) -> None:
        """Do nothing: panes are taken in as they come."""

    def values_changed(self) -> None:
        """Do nothing: there is no replica."""

    @property
    def size(self) -> int:
        """Number of candidates that are held for all members."""
        return len(self._tops)

    # Windows --------------------------------------------------------------------------------------

    def inside(self, window: int) -> WindowTops:
        """Return the candidates of a window; those of all members are found together."""
        if self._shown is None or self._shown[0] != window:
            self._shown = window, self._tops.inside(window)
        return self._shown[1]

    def extents(self, window: int) -> Extents:
        """Return the sizes of the stream's numbers in a window."""
        return self._extents.of(window)

    def unscored(self, window: int) -> int:
        """Return the number of a window's solutions without a score."""
        panes = self._unscored.items()
        return sum(count for (first, last), count in panes if first <= window <= last)

    def _wanted(self) -> dict[int, int]:
        return {each.number: each.k for each in self._rankings.values()}

    def open_from(self, window: int) -> None:
        """Release data that lies only in earlier windows."""
        self._tops.close_before(window, self._wanted())
        self._extents.close_before(window)
        self._unscored = {
            span: count for span, count in self._unscored.items() if span[1] >= window
        }
        self._shown = None

    # Snapshots ------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes]:
        """Return the parts of the state."""
        panes = [[*span, count] for span, count in self._unscored.items()]
        return {
            _TOPS: self._tops.snapshot(),
            _PANES: json.dumps([self._joined, panes]).encode(),
            _EXTENTS: self._extents.snapshot(),
        }

    def resume(self, parts: Mapping[str, bytes]) -> None:
        """Restore the parts of a snapshot."""
        self._tops.resume(parts[_TOPS])
        self._joined, panes = json.loads(parts[_PANES])
        self._unscored = {(first, last): count for first, last, count in panes}
        self._extents.resume(parts[_EXTENTS])

    def snapshot_committed(self) -> None:
        """Do nothing: the whole state is in the snapshot."""

    def release(self) -> None:
        """Do nothing: there is nothing besides memory."""


class NearestRanking:
    """Ranking of one member, of what the content holds for all."""

    def __init__(self, bound: BoundQuery, content: NearestContent, number: int) -> None:
        assert bound.nearest is not None
        self.centre = bound.nearest.centre
        self.k = bound.plan.k + bound.plan.offset
        self.scoring = ReplicaScoring(bound.plan.score, None)
        self.number = number
        """Number of the member in the content."""
        self._content = content
        self._terms = bound.plan.stream_variables
        self._uncertain_until: int | None = None
        """Last window that lacks a solution that came too late for an earlier one."""

    @property
    def list(self) -> Sequence[int]:
        """Candidates that are held for all members."""
        return range(self._content.size)

    def note_late(self, last: int) -> None:
        """Note a solution that was too late, given the last window that should hold it."""
        known = self._uncertain_until
        self._uncertain_until = last if known is None else max(last, known)

    def top(self, window: int) -> Top:
        """Return a window's best, approximate if the window lacks a late solution."""
        top = self._content.inside(window).top(self.number, self.k)
        if self._uncertain_until is None or window > self._uncertain_until:
            return top
        return Top(window, top.rows, top.merits, Certainty.APPROXIMATE, LOST, math.inf)

    def terms(self, rows: Rows, at: int) -> Mapping[str, str]:
        """Return the terms of one of the best, as bound by the window's pattern."""
        return dict(zip(self._terms, (column[at] for column in rows.carried), strict=True))

    @property
    def keeps_terms(self) -> bool:
        """True: rows have all their terms."""
        return True

    def ratios(self, rows: Rows, at: int) -> Mapping[str, Fraction]:
        """Return nothing: terms are as they came."""
        return {}

    def extents(self, window: int) -> Extents:
        """Return the sizes of the stream's numbers in a window, by variable."""
        return self._content.extents(window)

    def unscored(self, window: int) -> int:
        """Return the number of a window's solutions without a score."""
        return self._content.unscored(window)

    def contenders(self, window: int, most: int) -> Contenders:
        """Return the nearest that are held."""
        rows, merits = self._content.inside(window).held(self.number)
        return first_of(rows, merits, rows.parts, most, is_whole=False)

    def wanted(self, window: int, inquiry: Inquiry) -> Wanted:
        """Return no keys: there is no remote."""
        return Wanted([], NOTHING_PROPOSED, [])

    def needed(self) -> Iterable[str]:
        """Return no keys."""
        return ()

    def settle(self, window: int) -> None:
        """Do nothing: a window's best are found when they are asked for."""

    def apply_changes(self, keys: Iterable[str], first: frozenset[str]) -> None:
        """Do nothing: scores never change."""

    def close_before(self, window: int) -> None:
        """Do nothing: the content releases what no member needs."""

    def snapshot(self) -> bytes:
        """Return the ranking's own state."""
        return json.dumps([self.number, self._uncertain_until]).encode()

    def resume(self, snapshot: bytes) -> None:
        """Restore a snapshot."""
        self.number, self._uncertain_until = json.loads(snapshot)
