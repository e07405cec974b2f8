"""Aggregates that a query computes, with the datatypes of their variables."""

from __future__ import annotations

from acquatop.ingest.aggregate_columns import AggregateColumns
from acquatop.plan.bound import BoundQuery


def aggregate_columns(bound: BoundQuery) -> AggregateColumns:
    """Return the aggregates of a query that has any."""
    aggregate = bound.plan.aggregate
    assert aggregate is not None
    datatypes = {
        each.of: bound.matcher.datatype(each.of)
        for each in aggregate.columns
        if each.of is not None
    }
    return AggregateColumns(aggregate.columns, datatypes)
