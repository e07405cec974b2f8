"""Queries with aggregates, compiled for tests."""

from __future__ import annotations

from tests.support.rspql.plans import alone

PATTERN = "?post :mentions ?u"


def grouped(
    select: str = "?u (COUNT(*) AS ?n)",
    where: str = f"WINDOW :w {{ {PATTERN} ; :x ?x }}",
    *,
    order: str = "DESC(?n)",
    group: str = "GROUP BY ?u",
) -> str:
    """Return a query that groups by itself, without a sub-query."""
    return alone(where, select=select, order=f"{group} ORDER BY {order}")
