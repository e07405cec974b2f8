"""Binding of the parts of a query that joins several windows: each is a query of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from acquatop.catalog.catalog import Catalog
from acquatop.ingest.match import Matcher
from acquatop.ingest.matchers import matcher_of
from acquatop.plan.bound import BoundQuery, BoundWindow
from acquatop.plan.find_names import window_of
from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.plan import AtClose, Finish, Score, TopKPlan, WindowPart

_ANY = ast.Literal("0", ast.XSD + "integer")
"""Score of a part's solutions: all are kept, and ranked only once they are joined."""


def bound_parts(
    plan: TopKPlan, catalog: Catalog, found: list[Diagnostic]
) -> tuple[BoundQuery, ...]:
    """Return the parts of a plan, bound; append to ``found`` why one cannot be."""
    bound = []
    for part in plan.parts:
        window = window_of(part.window, catalog, found)
        if window is None:
            continue
        checked = _matcher(plan, part, window)
        checked.check(found)
        if part.aggregate is not None and window.stream.keys == "executors":
            message = 'the stream has keys = "executors", where windows cannot be joined'
            found.append(Diagnostic("unsupported", message, part.window.name.span))
        own = _plan_of(plan, part)
        matcher = matcher_of(own, window.stream.mapping, arrivals=window.stream.arrivals)
        name = part.window.name.value
        bound.append(BoundQuery(name, own, window.stream, None, window.windows, matcher))
    return tuple(bound)


def datatypes_at_close(at_close: AtClose, known: Mapping[str, str]) -> dict[str, str]:
    """Return the datatypes of what is made at a close, given those of the streams' variables."""
    times = (at_close.now, *(name for name, _ in at_close.instants))
    past = {each.name: known.get(each.variable) for each in at_close.past_values}
    found = {**dict.fromkeys(filter(None, times), ast.XSD + "integer"), **past}
    return {name: datatype for name, datatype in found.items() if datatype is not None}


def parts_have_numbers(plan: TopKPlan, catalog: Catalog) -> bool:
    """Return True if the streams' values in the score and the filters are numbers."""
    windows = [(part, window_of(part.window, catalog, [])) for part in plan.parts]
    return all(
        window is not None and _matcher(plan, part, window).has_numbers for part, window in windows
    )


def _matcher(plan: TopKPlan, part: WindowPart, window: BoundWindow) -> Matcher:
    """Return a matcher that checks the part's values as the score of the whole needs them."""
    own = _plan_of(plan, part)
    own = replace(own, score=replace(own.score, expression=plan.score.expression))
    return matcher_of(own, window.stream.mapping, arrivals=window.stream.arrivals)


def _plan_of(plan: TopKPlan, part: WindowPart) -> TopKPlan:
    scored = plan.score.stream_variables
    past = plan.at_close.past_values if plan.at_close else ()
    before = (each.variable for each in past if each.name in scored)
    numbers = tuple(name for name in dict.fromkeys((*scored, *before)) if name in part.bound)
    shared = [name for each in plan.parts if each is not part for name in each.bound]
    joined = tuple(name for name in part.bound if name in (*shared, *plan.join_variables))
    return replace(
        plan,
        window=part.window,
        stream_pattern=part.pattern,
        stream_variables=part.variables,
        stream_filters=part.filters,
        aggregate=part.aggregate,
        service=None,
        join_variables=() if part.aggregate else joined,
        score=Score(_ANY, True, None, numbers, (), functions=plan.score.functions),
        k=1,
        offset=0,
        projection=part.bound,
        computed=(),
        # What must be distinct is kept whole.
        finish=None if part.aggregate else Finish(is_distinct=True),
        stream_group=part.group,
        is_linked=part.is_linked,
        join=None,
        form=None,
        parts=(),
        at_close=None,
    )
