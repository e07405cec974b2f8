"""Join windows: read the parts of a query that several windows answer, each by itself.

Each WINDOW pattern, or sub-query around or in one, is a part: its content changes from close to
close as if it stood alone. The parts are joined by the terms that they share, at every close.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from rspql import ast
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.planned_score import check_keys_unused
from rspql.passes.push_filters import PushedFilters, push_filters
from rspql.passes.read_stream import StreamPart, read_stream
from rspql.passes.record_pattern import as_evaluated, check_bound
from rspql.plan import AnyWindow, AtClose, CountWindow, Score, WindowPart
from rspql.scope import Names, certain
from rspql.scoring import FunctionRegistry


@dataclass(frozen=True)
class JoinedParts(StreamPart):
    """Parts of several windows together, as one that binds what all of them bind.

    So does one window with what is made ``at_close``.
    """

    parts: tuple[StreamPart, ...] = field(default=())
    at_close: AtClose = field(default_factory=AtClose)

    @property
    def solved(self) -> Names:
        """The variables that the parts bind."""
        return self.bound

    @property
    def bound(self) -> Names:
        """The variables that the rest of the query sees."""
        names = [name for part in self.parts for name in part.bound]
        return dict.fromkeys((*names, *self.at_close.names))

    @property
    def hidden(self) -> Names:
        """The variables that the rest of the query does not see."""
        return {name: None for part in self.parts for name in part.hidden}


def read_windows(
    elements: Sequence[ast.WindowPattern | ast.SubSelect], at_close: AtClose | None = None
) -> StreamPart:
    """Return the stream's part of a query, or the parts of several windows together."""
    parts = tuple(map(read_stream, elements))
    if len(parts) == 1 and at_close is None:
        return parts[0]
    for part, element in zip(parts, elements, strict=True):
        _check_aggregate(part, element)
    ordered = _in_joining_order(parts, elements)
    pattern = tuple(triple for part in ordered for triple in part.pattern)
    return JoinedParts(
        ordered[0].window, pattern, (), parts=ordered, at_close=at_close or AtClose()
    )


def _check_aggregate(part: StreamPart, element: ast.Pattern) -> None:
    """Raise if what is joined of a window may be unbound, or is there without a solution."""
    made = part.aggregate
    if made is not None and (made.derived or made.uncertain or not made.keys):
        raise NotIncremental("what a joined window aggregates may be unbound", element)


def _in_joining_order(
    parts: Sequence[StreamPart], elements: Sequence[ast.Pattern]
) -> tuple[StreamPart, ...]:
    """Return the parts so that each shares a variable with those before it."""
    ordered, waiting = [parts[0]], list(parts[1:])
    while waiting:
        known = {name for part in ordered for name in part.bound}
        ready = next((each for each in waiting if known & each.bound.keys()), None)
        if ready is None:
            message = "the windows' patterns share no variable"
            raise NotIncremental(message, elements[parts.index(waiting[0])])
        ordered.append(ready)
        waiting.remove(ready)
    for name in shared(parts):
        for part in parts:
            _check_shared(name, part)
    return tuple(ordered)


def shared(parts: Iterable[StreamPart]) -> list[str]:
    """Return the variables that several parts bind."""
    several = list(parts)
    names = {name: None for part in several for name in part.bound}
    return [name for name in names if sum(name in part.bound for part in several) > 1]


def _check_shared(name: str, part: StreamPart) -> None:
    if name not in part.bound:
        return
    if part.aggregate is not None and name not in part.aggregate.keys:
        raise NotIncremental(f"it joins on ?{name}, which is an aggregate", part.window)
    if part.group is not None and name not in certain(part.group):
        raise NotIncremental(f"?{name} may be unbound, and windows are joined on it", part.group)


def push_to_parts(
    joined: JoinedParts, filters: Iterable[ast.Expression], remote: Names
) -> tuple[PushedFilters, Sequence[tuple[ast.Expression, ...]]]:
    """Return the filters of a query by where they are decided, and those of each part in order.

    The rest is decided on what the parts join to: also the conditions on aggregates.
    """
    beside = push_filters(filters, {}, remote)
    left = [*beside.joined, *(each for part in joined.parts for each in part.later)]
    own = []
    for part in joined.parts:
        names = part.bound if part.aggregate is None else dict.fromkeys(part.aggregate.keys)
        arriving = push_filters(left, names, {})
        inside = push_filters(part.filters, part.solved, {})
        own.append((*inside.stream, *arriving.stream))
        left = list(arriving.joined)
    every = tuple(each for several in own for each in several)
    return PushedFilters(every, beside.remote, tuple(left)), own


def window_parts(
    joined: JoinedParts,
    own: Sequence[tuple[ast.Expression, ...]],
    windows: Sequence[AnyWindow],
    inputs: Iterable[str],
    conditions: Sequence[ast.Expression],
    score: Score,
    functions: FunctionRegistry,
) -> tuple[WindowPart, ...]:
    """Return the parts as the plan has them; ``conditions`` are decided on what they join to."""
    found = []
    inputs = tuple(inputs)
    for part, filters in zip(joined.parts, own, strict=True):
        window = next(each for each in windows if each.name == part.window)
        if isinstance(window, CountWindow):
            raise NotIncremental("windows that count are not joined", part.window)
        if part.group is not None and part.aggregate is None:
            check_bound(part.group, inputs, conditions, score.expression)
        _check_averages(part, score, joined.at_close)
        for name in inputs:
            _check_shared(name, part)
        check_keys_unused(part, score.stream_variables, score.expression)
        found.append(
            WindowPart(
                window,
                part.pattern,
                tuple(part.solved),
                filters,
                part.aggregate,
                None if part.group is None else as_evaluated(part.group, functions),
                part.is_linked,
            )
        )
    return tuple(found)


def _check_averages(part: StreamPart, score: Score, at_close: AtClose) -> None:
    """Raise if a score computes with an average: its digits are not joined."""
    used = {*score.stream_variables, *(each.variable for each in at_close.past_values)}
    for column in part.aggregate.columns if part.aggregate else ():
        if column.function == "avg" and column.variable in used:
            message = (
                f"?{column.variable} is an average, and scores of several windows compute with it"
            )
            raise NotIncremental(message, score.expression)
