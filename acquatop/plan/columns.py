"""Variables of a query's answers, with the types that their values are known to have."""

from __future__ import annotations

from collections.abc import Mapping

from acquatop.ingest.match import Matcher
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery
from rspql import ast
from rspql.ast import XSD
from rspql.plan import TopKPlan, WindowedPlan

_TYPES = {f"{XSD}integer": "bigint", f"{XSD}double": "double"}
"""Spark's types for datatypes."""


def columns_of(bound: Bound) -> Mapping[str, str] | None:
    """Return Spark's type of each variable, ``string`` if no other is known for all values.

    Returns None if the query does not name its variables: ``SELECT *``.
    """
    query = bound.query if isinstance(bound, BoundCounted) else bound
    if isinstance(query, BoundQuery) and query.plan.form is None:
        types = _types(query)
        return {name: types.get(name, "string") for name in query.plan.projection}
    plan = query.plan.windowed if isinstance(query.plan, TopKPlan) else query.plan
    names = _names(plan)
    return None if names is None else dict.fromkeys(names, "string")


def _types(bound: BoundQuery) -> dict[str, str]:
    if bound.parts:
        return {name: type_ for part in bound.parts for name, type_ in _types(part).items()}
    plan, matcher = bound.plan, bound.matcher
    if plan.aggregate is None:
        found = {name: _TYPES.get(matcher.datatype(name) or "") for name in plan.stream_variables}
    else:
        found = {
            each.variable: _aggregated(each.function, each.of, matcher)
            for each in plan.aggregate.columns
        }
    return {name: type_ for name, type_ in found.items() if type_ is not None}


def _aggregated(function: str, of: str | None, matcher: Matcher) -> str | None:
    """Return the type of an aggregate; sums of integers may be larger than any type."""
    if of is None or function == "count":
        return "bigint"
    kind = matcher.number_kind(of)
    type_ = None if kind is None else _TYPES.get(kind.datatype)
    return type_ if type_ == "double" or function in ("min", "max") else None


def _names(plan: WindowedPlan) -> tuple[str, ...] | None:
    match plan.query.form:
        case ast.Select(projection=projection):
            names = (
                each.variable.name if isinstance(each, ast.Assignment) else each.name
                for each in projection
            )
            return tuple(names) or None
        case ast.Construct() | ast.Describe():
            return ("subject", "predicate", "object")
        case _:
            return ()
