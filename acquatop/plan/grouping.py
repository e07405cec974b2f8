"""Groups of queries that are answered from one structure, and queries that are answered alone."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeGuard

from acquatop.catalog.vocabulary import Strategy
from acquatop.plan.bound import Bound, BoundCounted, BoundQuery, BoundWindowed
from acquatop.plan.bound.query import NEAREST
from acquatop.plan.strategy import Choice, Workload, choose
from acquatop.plugins import family_of
from acquatop.topk.shared.contract import TopKRequest
from acquatop.topk.strategies import Family
from rspql.plan import Join

_MANY = 1_000
"""Maximum number of queries for which sharing is tried out."""


def can_share(bound: Bound) -> TypeGuard[BoundQuery | BoundCounted]:
    """Return True if a query can be answered together with others that have other windows.

    Its scores must never change.
    """
    return bound.can_share


def choice_among(
    bound: BoundQuery | BoundCounted, others: Iterable[BoundQuery | BoundCounted] = ()
) -> Choice:
    """Return the best strategy for a query that can share, beside others with the same ranking.

    The rate of records is not known beforehand: one record per millisecond is assumed.
    """
    if bound.nearest is not None and hint_for(bound) is None:
        return NEAREST
    assert isinstance(bound, BoundQuery), "windows that count share a grid alone"
    asked = tuple(
        TopKRequest(each.windows, each.plan.k + each.plan.offset)
        for each in (bound, *others)
        if isinstance(each, BoundQuery)
    )
    hint = hint_for(bound)
    available = (Strategy.EACH, Strategy.SHARED) if hint is None else (hint,)
    return choose(Workload(asked), available=available, hint=hint)


def shares_slot(bound: BoundQuery | BoundCounted, choice: Choice) -> bool:
    """Return True if a choice is a structure that queries with other rankings or windows share.

    Those with the same windows of time are together anyway.
    """
    return choice.is_shared or (
        choice.strategy == Strategy.GRID and isinstance(bound, BoundCounted)
    )


def hint_for(bound: BoundQuery | BoundCounted) -> str | None:
    """Return the strategy that the catalog asks for, if it is one for windows of time."""
    if isinstance(bound, BoundCounted):
        return None
    asked = bound.stream.strategy
    return asked if family_of(asked) in (Family.LIST, Family.SHARED) else None


def shared_by(bound: BoundQuery) -> str:
    """Return the structure that queries like this one share if they do."""
    asked = hint_for(bound)
    return asked if asked is not None and family_of(asked) is Family.SHARED else Strategy.SHARED


def fewest_that_share(bound: BoundQuery | BoundCounted) -> int | None:
    """Return the number of queries like this one from which on they share a structure.

    None if 1 000 do not. O(log n) choices.
    """
    counts = range(1, _MANY + 1)

    def shares(count: int) -> bool:
        return choice_among(bound, [bound] * (count - 1)).is_shared

    at = bisect_left(counts, True, key=shares)
    return counts[at] if at < len(counts) else None


def evaluation_key(bound: Bound, *, shared: bool = False) -> str:
    """Return the key of a query's evaluation; queries with equal keys are evaluated together.

    ``shared`` selects the key of the structure that queries with other windows share. State
    directories hold these keys: their text must not change.
    """
    match bound:
        case BoundQuery(parts=()):
            return _shared_key(bound) if shared else _same_content_key(bound)
        case BoundQuery():
            return f"joined windows: {bound.name}"
        case BoundCounted() if shared:
            return _nearest_key(bound)
        case BoundWindowed() | BoundCounted():
            return f"alone: {bound.name}"


def _same_content_key(bound: BoundQuery) -> str:
    """Return the key of queries with the same windows, pattern, aggregates and remote."""
    plan, service = bound.plan, bound.service
    asked = (
        (service.iri if service else None, plan.service.group, plan.service.variables)
        if plan.service
        else None
    )
    return repr(
        (
            bound.stream.iri,
            bound.windows,
            bound.matcher.signature,
            plan.aggregate,
            asked,
            plan.join_variables,
            bound.refills,
            *((bound.stream.keys, bound.stream.buckets) if bound.keys_in_executors else ()),
            *(("retained",) if bound.plan.finish is not None else ()),
            *(() if bound.listed_by == Strategy.EACH else (bound.listed_by,)),
            *((bound.plan.gathered,) if bound.plan.gathered else ()),
            *_graphs_of(plan.join),
            *(("nearest", *_placed(bound)) if bound.is_nearest_over_time else ()),
        )
    )


def _graphs_of(join: Join | None) -> tuple[object, ...]:
    return (join.default_graphs, join.named_graphs) if join is not None and join.graphs else ()


def _shared_key(bound: BoundQuery) -> str:
    """Return the key of queries with the same pattern and the same score."""
    structure = shared_by(bound)
    return f"shared: {bound.ranked}" + ("" if structure == Strategy.SHARED else f" {structure}")


def _nearest_key(bound: BoundCounted) -> str:
    """Return the key of queries that rank the same elements by distances to points of their own."""
    assert isinstance(bound.query, BoundQuery)
    query = bound.query
    same = (bound.stream.iri, query.windows, query.matcher.signature)
    return f"nearest: {(*same, *_placed(query))!r}"


def _placed(bound: BoundQuery) -> tuple[object, ...]:
    """Return what queries that rank by distances have in common, but for their points."""
    assert bound.nearest is not None
    return bound.nearest.variables, bound.nearest.is_root, bound.plan.score.condition


def without_grid(bound: BoundQuery | BoundCounted) -> BoundQuery | BoundCounted:
    """Return a query as it was before grids were used for it."""
    if isinstance(bound, BoundQuery):
        return replace(bound, may_use_grid=False)
    assert isinstance(bound.query, BoundQuery)
    return replace(bound, query=replace(bound.query, may_use_grid=False))
