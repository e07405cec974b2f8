"""Explanation of what executors send to the driver for a query."""

from __future__ import annotations

from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundTable, BoundWindowed
from acquatop.plan.bound.query import MOST_KEYS
from acquatop.plan.grouping import can_share, choice_among


def sent_for(bound: Bound) -> str:
    """Return what executors send to the driver for a query, and the reason if it is much."""
    if isinstance(bound, BoundTable):
        return "nothing, because there is no stream"
    if isinstance(bound, BoundWindowed):
        return "every record, because whole windows are evaluated"
    if isinstance(bound, BoundCounted):
        return "every record, because the driver counts them"
    if bound.parts:
        several = (f"of <{each.name}> {sent_for(each)}" for each in bound.parts)
        return "; ".join(several)
    if bound.keeps_each_solution:
        return _solutions(bound)
    if bound.plan.aggregate is not None:
        return _aggregates(bound)
    best = bound.plan.k + bound.plan.offset
    if can_share(bound) and choice_among(bound).is_shared:
        return f"what can be among the best {best} of a window"
    if bound.service is None:
        return f"the best {best} of each pane and partition"
    kept = best + (0 if bound.service.refresh.chooses_n else bound.service.refresh.n)
    return f"the best {kept} of each pane and partition, what has no score yet, and a sample"


def _aggregates(bound: BoundQuery) -> str:
    places = "a row for each pane and partition, as executors keep partial aggregates in files"
    if bound.keys_in_executors:
        return places
    partials = "partial aggregates of each pane, key and partition"
    if bound.keys_may_move:
        return f"{partials}; on Spark beyond {MOST_KEYS:,} keys {places}"
    return partials


def _solutions(bound: BoundQuery) -> str:
    if bound.matcher.combines:
        return (
            "every record that the pattern needs something of, because records of one subject, or "
            "linked ones, make solutions together"
        )
    if bound.stream.arrivals == "latest":
        what, why = (
            "the newest solution of each subject, pane and partition",
            "it replaces older ones",
        )
    else:
        what, why = "every solution", "the remote's values may change before its pane is complete"
    if bound.joins_constants:
        why = "it is joined in the driver"
    if bound.plan.aggregate is not None:
        why = "one that comes again counts once"
    elif bound.looks_at_panes:
        why = "the policy looks at all that a window joins with"
    elif bound.retains:
        why = "those that are equal may all be needed"
    elif bound.refills:
        why = "the windows' content is kept"
    return f"{what}, because {why}"
