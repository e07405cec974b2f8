"""Queries compiled for tests, and the texts that they are made of."""

from __future__ import annotations

from rspql.compiler import analyse, compile_query
from rspql.plan import TopKPlan

WINDOW = "WINDOW :w { ?u :m ?m }"


SERVICE = "SERVICE :p { ?u :f ?f }"


def query(
    where: str = f"{WINDOW} {SERVICE}",
    *,
    select: str = "?u (?m + ?f AS ?score)",
    order: str = "ORDER BY DESC(?score)",
    limit: str = "LIMIT 3",
    windows: str = "FROM NAMED WINDOW :w ON :s [RANGE 9m STEP 3m]",
) -> str:
    return f"PREFIX : <urn:> SELECT {select} {windows} WHERE {{ {where} }} {order} {limit}"


def topk(text: str) -> TopKPlan:
    plan = compile_query(text)
    assert isinstance(plan, TopKPlan), analyse(text).reason
    return plan


def alone(where: str = WINDOW, *, select: str = "?u (2 * ?m AS ?score)", **clauses: str) -> str:
    """Return a query without a SERVICE."""
    return query(where, select=select, **clauses)
