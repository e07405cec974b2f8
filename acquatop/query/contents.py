"""Choice of the content of a top-k query."""

from __future__ import annotations

from collections.abc import Sequence

from acquatop.ingest.identity_hash import IdentityHash
from acquatop.plan.bound import BoundQuery
from acquatop.query.aggregates.executor_content import ExecutorAggregates
from acquatop.query.aggregates.in_driver import AggregatesInDriver
from acquatop.query.aggregates.in_executors import AggregatesInExecutors
from acquatop.query.aggregates.moving import Move, MovingAggregates
from acquatop.query.content import Buffered, Content, PaneFollower, SolutionContent
from acquatop.query.joined_remote import JoinedRemote
from acquatop.query.topk.content import CandidateContent
from acquatop.query.topk.nearest import NearestContent


def content_of(
    bound: BoundQuery,
    remote: JoinedRemote,
    scattered: ExecutorAggregates | None = None,
    move: Move | None = None,
    hashes: IdentityHash | None = None,
) -> Content:
    """Return the kind of content that a query needs."""
    is_reduced = (
        bound.arrivals == "distinct"
        and not (bound.refills or bound.retains)
        and not (bound.joins_constants and bound.plan.aggregate is None)
        and not remote.refresh.looks_at_panes
    )
    if bound.is_nearest_over_time:
        return NearestContent(bound)
    if scattered is not None:
        assert is_reduced, "only reduced arrivals can be kept in executors"
        return AggregatesInExecutors(bound, remote.store, scattered)
    if move is not None and is_reduced:
        return MovingAggregates(bound, remote.store, hashes, move)
    content: SolutionContent
    if bound.plan.aggregate is not None:
        content = AggregatesInDriver(bound, remote.store, hashes)
    else:
        content = CandidateContent(bound, remote.store)
    followers: Sequence[PaneFollower] = [remote.refresh]
    if is_reduced:
        return content
    return Buffered(bound, content, followers, prunes=bound.has_fixed_scores)
