"""Choice of the matcher of a pattern on a stream's records."""

from __future__ import annotations

from acquatop.ingest.combining import CombiningMatcher
from acquatop.ingest.combining_graph_matcher import CombiningGraphMatcher
from acquatop.ingest.graph_matcher import GraphMatcher, may_multiply
from acquatop.ingest.latest_matcher import LatestGraphMatcher
from acquatop.ingest.linked_matcher import LinkedGraphMatcher
from acquatop.ingest.match import Matcher
from connectors.contract import RecordDecoder
from connectors.mapping import FieldMapping
from rspql.plan import TopKPlan


def matcher_of(plan: TopKPlan, mapping: RecordDecoder, *, arrivals: str) -> Matcher:
    """Return the matcher of a plan's pattern on a stream's records."""
    may_recur = arrivals == "all" and not _has_own_subjects(mapping)
    kind: type[Matcher]
    if plan.is_linked:
        kind = LinkedGraphMatcher
    elif plan.stream_group is not None:
        may_be_several = arrivals == "latest" and may_multiply(plan.stream_group)
        kind = LatestGraphMatcher if may_be_several else GraphMatcher
        kind = CombiningGraphMatcher if may_recur else kind
    else:
        kind = CombiningMatcher if may_recur and len(set(plan.stream_pattern)) > 1 else Matcher
    return kind(plan, mapping, arrivals=arrivals)


def _has_own_subjects(mapping: RecordDecoder) -> bool:
    """Return True if each row of a stream has a subject that no other has."""
    return isinstance(mapping, FieldMapping) and not mapping.subject.field and not mapping.several
