"""Solutions of a trace's pattern, and which of them each window has."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from acquatop.ingest.combining import CombiningMatcher
from acquatop.ingest.combining_graph_matcher import CombiningGraphMatcher
from acquatop.ingest.match import Matcher
from acquatop.ingest.solution_columns import GONE
from acquatop.ingest.star_join import no_solutions, solutions_together
from acquatop.lab.replay.trace import Trace
from acquatop.topk.contract import IntArray
from connectors.mapping import SUBJECT, TIME

MatcherT = TypeVar("MatcherT", bound=Matcher)

OfWindow = Callable[[int, int, int], IntArray]
"""Function that returns the positions of a window's solutions, given its number and bounds."""


def solutions_of(trace: Trace) -> tuple[pa.Table, OfWindow]:
    """Return the solutions of a trace, and the function that tells which a window has."""
    matcher = trace.bound.matcher
    if isinstance(matcher, CombiningMatcher):
        return _together(trace, matcher, _of_star)
    if isinstance(matcher, CombiningGraphMatcher):
        return _together(trace, matcher, _of_graphs)
    solutions = _newest_last(matcher.match(trace.records))
    times = np.asarray(solutions.column(TIME).to_numpy(), dtype=np.int64)

    def of_window(window: int, opens_ms: int, closes_ms: int) -> IntArray:
        begin, end = np.searchsorted(times, [opens_ms, closes_ms], side="right")
        return np.arange(begin, end)

    return solutions, of_window


def _together(
    trace: Trace, matcher: MatcherT, solve: Callable[[MatcherT, pa.Table], Iterable[pa.Table]]
) -> tuple[pa.Table, OfWindow]:
    """Return the solutions that several records of a window make, window by window."""
    said = matcher.table(matcher.find(trace.records))
    times = np.asarray(said.column(TIME).to_numpy(), dtype=np.int64)
    tables, sizes = list(solve(matcher, said.slice(0, 0))), [0]
    for window in trace.windows():
        bounds = trace.bound.windows.bounds(window)
        begin, end = np.searchsorted(times, bounds, side="right").tolist()
        tables += solve(matcher, said.slice(begin, end - begin).combine_chunks())
        sizes.append(sum(map(len, tables)))
    first, starts = trace.windows().start, np.array(sizes)

    def of_window(window: int, opens_ms: int, closes_ms: int) -> IntArray:
        return np.arange(starts[window - first], starts[window - first + 1])

    return pa.concat_tables(tables).combine_chunks(), of_window


def _of_star(matcher: CombiningMatcher, said: pa.Table) -> Iterator[pa.Table]:
    yield matcher.solutions(said, no_solutions(len(matcher.said)))
    times = np.asarray(said.column(TIME).to_numpy(), dtype=np.int64)
    columns = [said.column(name) for name in (SUBJECT, *matcher.said)]
    for found in solutions_together(columns, times):
        yield matcher.solutions(said, found)


def _of_graphs(matcher: CombiningGraphMatcher, said: pa.Table) -> Iterator[pa.Table]:
    yield matcher.solutions(*matcher.together(said))


def _newest_last(solutions: pa.Table) -> pa.Table:
    """Return solutions in time order; of equal times the one that replaces the others is last."""
    terms = [name for name in solutions.column_names if name.startswith("?")]
    # A missing term sorts before any other.
    known = {name: pc.fill_null(solutions.column(name), "") for name in terms}
    sortable = pa.table({TIME: solutions.column(TIME), **known, GONE: solutions.column(GONE)})
    keys = [(TIME, "ascending"), *((name, "ascending") for name in terms), (GONE, "descending")]
    return solutions.take(pc.sort_indices(sortable, sort_keys=keys))
