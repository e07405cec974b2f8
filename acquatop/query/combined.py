"""Choice of what makes solutions of several records."""

from __future__ import annotations

from acquatop.ingest.combining import CombiningMatcher
from acquatop.ingest.combining_graph_matcher import CombiningGraphMatcher
from acquatop.ingest.latest_matcher import LatestGraphMatcher
from acquatop.ingest.linked_matcher import LinkedGraphMatcher
from acquatop.plan.bound import BoundQuery
from acquatop.query.combined_graphs import CombinedGraphs
from acquatop.query.combined_records import CombinedRecords
from acquatop.query.held_records import Combined
from acquatop.query.latest_graphs import LatestGraphs
from acquatop.query.linked_graphs import LinkedGraphs


def combined_of(bound: BoundQuery) -> Combined | None:
    """Return the maker of a query's solutions; None if each record makes its own."""
    match bound.matcher:
        case CombiningMatcher() as matcher:
            return CombinedRecords(matcher, bound.windows)
        case LinkedGraphMatcher() as matcher:
            return LinkedGraphs(matcher, bound.windows)
        case LatestGraphMatcher() as matcher:
            return LatestGraphs(matcher, bound.windows)
        case CombiningGraphMatcher() as matcher:
            return CombinedGraphs(matcher, bound.windows)
        case _:
            return None
