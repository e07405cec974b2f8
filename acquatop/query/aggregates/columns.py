"""Aggregates that a query computes, with the kinds of numbers that they are of."""

from __future__ import annotations

from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.plan.bound import BoundQuery


def aggregate_columns(bound: BoundQuery) -> AggregateColumns:
    """Return the aggregates of a query that has any."""
    aggregate = bound.plan.aggregate
    assert aggregate is not None
    kinds = {
        each.of: bound.matcher.number_kind(each.of)
        for each in aggregate.columns
        if each.of is not None
    }
    return AggregateColumns(aggregate.columns, kinds, aggregate.uncertain)
