"""Weight of a query among those that share the budget of a service."""

from __future__ import annotations

import math
from dataclasses import replace

from acquatop.errors import UserError
from acquatop.plan.bound import Bound, BoundCounted


def checked_weight(weight: float) -> float:
    """Return a weight; raise :class:`UserError` if it is none."""
    if not (math.isfinite(weight) and weight > 0):
        raise UserError(
            f"a query cannot weigh {weight:g}\n"
            "  hint: a weight is a number above 0; 2 gets twice the part of a query with 1"
        )
    return weight


def weighted(bound: Bound, weight: float) -> Bound:
    """Return a query with a weight."""
    checked_weight(weight)
    if isinstance(bound, BoundCounted):
        return replace(bound, query=replace(bound.query, weight=weight))
    return replace(bound, weight=weight)
