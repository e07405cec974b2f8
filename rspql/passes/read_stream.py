"""Read the stream's part of a query: a star of triple patterns, filters, and aggregates per key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from rspql import ast
from rspql.passes.linked_pattern import check_linked_pattern
from rspql.passes.not_incremental import NotIncremental
from rspql.passes.read_aggregates import read_aggregates
from rspql.passes.record_pattern import check_record_pattern, check_volatile, is_star
from rspql.plan import Aggregation
from rspql.scope import Names, certain, used_in, variables_of, visible


@dataclass(frozen=True)
class StreamPart:
    """The part of a query that is computed from its stream.

    ``filters`` need only variables of the pattern. ``later`` are conditions on aggregates, of
    HAVING or of filters in the WINDOW; empty if there is no aggregate. If the pattern
    is more than a star, ``group`` is all of it but the filters. It is about one subject, unless it
    ``is_linked``.
    """

    window: ast.Iri
    pattern: tuple[ast.TriplePattern, ...]
    filters: tuple[ast.Expression, ...]
    aggregate: Aggregation | None = None
    later: tuple[ast.Expression, ...] = ()
    group: ast.Group | None = None
    is_linked: bool = False

    @property
    def solved(self) -> Names:
        """The variables of a solution of the pattern."""
        return variables_of(self.pattern) if self.group is None else visible(self.group)

    @property
    def bound(self) -> Names:
        """The variables that the rest of the query sees."""
        if self.aggregate is None:
            return self.solved
        return dict.fromkeys(
            (*self.aggregate.keys, *(column.variable for column in self.aggregate.columns))
        )

    @property
    def hidden(self) -> Names:
        """The pattern's variables that the rest of the query does not see."""
        bound = self.bound
        return {name: None for name in variables_of(self.pattern) if name not in bound}


def read_stream(element: ast.WindowPattern | ast.SubSelect) -> StreamPart:
    """Return the stream's part of a query: a WINDOW pattern, or a sub-query around or in one.

    Raises :class:`NotIncremental` with the first reason why it is not a star or an aggregate of
    one.
    """
    if isinstance(element, ast.SubSelect):
        return _aggregated(element, *_around_window(element))
    inner = next((each for each in element.group.elements if isinstance(each, ast.SubSelect)), None)
    if inner is None:
        return _plain(element.window, element.group.elements)
    beside = [each for each in element.group.elements if each is not inner]
    for each in beside:
        if not isinstance(each, ast.Filter):
            raise NotIncremental("there is more than a sub-query and filters in the WINDOW", each)
    part = _aggregated(
        inner, element.window, inner.query.where.elements if inner.query.where else ()
    )
    return replace(part, later=part.later + _filters(beside, part.bound))


def _around_window(sub: ast.SubSelect) -> tuple[ast.Iri | ast.Variable, tuple[ast.Pattern, ...]]:
    """Return the window's name in a sub-query around a WINDOW, and all elements to match."""
    elements = sub.query.where.elements if sub.query.where else ()
    windows = [each for each in elements if isinstance(each, ast.WindowPattern)]
    if any(isinstance(each, ast.ServicePattern) for each in ast.walk(sub)):
        raise NotIncremental("it aggregates or selects after the join with the SERVICE", sub)
    if len(windows) != 1:
        raise NotIncremental("a sub-query must have one WINDOW pattern in it", sub)
    for each in elements:
        if not isinstance(each, ast.WindowPattern | ast.Filter):
            raise NotIncremental("there is more than a WINDOW and filters in the sub-query", each)
    beside = tuple(each for each in elements if isinstance(each, ast.Filter))
    return windows[0].window, (*windows[0].group.elements, *beside)


def _plain(window: ast.Iri | ast.Variable, elements: tuple[ast.Pattern, ...]) -> StreamPart:
    """Return linked patterns and their filters, which may use only their variables."""
    assert isinstance(window, ast.Iri), "normalise leaves no other"
    beside = tuple(each for each in elements if isinstance(each, ast.Filter) and is_star([each]))
    group = ast.Group(tuple(each for each in elements if each not in beside))
    triples = tuple(each for each in ast.walk(group) if isinstance(each, ast.TriplePattern))
    if not triples:
        raise NotIncremental("there is no triple pattern in the WINDOW", window)
    if is_star(elements) and len({each.subject for each in triples}) == 1:
        return StreamPart(window, triples, _filters(beside, variables_of(triples)))
    check_volatile(group)
    filters = _filters(beside, visible(group))
    return StreamPart(window, triples, filters, group=group, is_linked=_is_linked(group))


def _is_linked(group: ast.Group) -> bool:
    """Return True if a group is about several subjects that are linked, False for one subject."""
    try:
        check_record_pattern(group)
    except NotIncremental:
        check_linked_pattern(group)
        return True
    return False


def _filters(elements: Iterable[ast.Pattern], bound: Names) -> tuple[ast.Expression, ...]:
    filters = tuple(each.expression for each in elements if isinstance(each, ast.Filter))
    for each in filters:
        if any(name not in bound for name in used_in(each)):
            raise NotIncremental("a filter in the WINDOW needs what is bound outside it", each)
    return filters


def _aggregated(
    sub: ast.SubSelect, window: ast.Iri | ast.Variable, elements: Iterable[ast.Pattern]
) -> StreamPart:
    """Return the star in a sub-query, with the aggregates that the sub-query computes of it."""
    part = _plain(window, tuple(elements))
    always = part.solved if part.group is None else certain(part.group)
    aggregation, having = read_aggregates(sub.query, part.solved, always)
    return replace(part, aggregate=aggregation, later=having)
