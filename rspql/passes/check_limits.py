"""Check a query against the limits: a deeper or wider one would end the process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rspql import ast
from rspql.diagnostics import Diagnostic, in_source_order
from rspql.limits import (
    ALTERNATIVES,
    COLUMNS,
    DEPTH,
    GROUP_KEYS,
    JOINED,
    NESTED_STEPS,
    OPTIONALS,
    ORDER_KEYS,
    PATTERNS,
    SizeLimit,
)
from rspql.scope import selected, visible

_Counted = tuple[SizeLimit, ast.Node, int]
"""Thing that counts against a limit: its place, and its amount."""


def check_limits(query: ast.Query) -> list[Diagnostic]:
    """Return a complaint about the first thing beyond each limit.

    Depth is reported alone, because all else may recurse that deep. Joins and ``*`` are checked
    only in queries that are not too large for it, so the time is proportional to the query's size.
    """
    too_deep = _too_deep(query)
    if too_deep is not None:
        return [too_deep]
    nodes = _nodes(query)
    found = _beyond(_counted(nodes)) or [
        *_beyond([*_columns(nodes), *_starred(query, nodes)]),
        *_crowded(nodes),
    ]
    return in_source_order([*found, *_nested_steps(nodes)])


def _nodes(query: ast.Query) -> list[ast.Node]:
    """Return all nodes of a query in source order, except those in VALUES and plain triples."""
    pending: list[ast.Node] = [query]
    found = []
    while pending:
        found.append(pending.pop())
        pending.extend(reversed(_children(found[-1])))
    return found


def _children(node: ast.Node) -> list[ast.Node]:
    # There may be very many values and triple patterns, and no limit counts their terms.
    return [] if isinstance(node, ast.Values) or _is_plain(node) else list(ast.children(node))


def _complaint(limit: SizeLimit, node: ast.Node) -> Diagnostic:
    return Diagnostic(
        "too-wide", f"the query has more than {limit.most} {limit.what}", node.span, limit.remedy
    )


# Depth ---------------------------------------------------------------------------------------


def _too_deep(query: ast.Query) -> Diagnostic | None:
    """Return the complaint about the first thing that makes the engine's tree too high."""
    heights: dict[int, int] = {}
    pending: list[tuple[ast.Node, int, bool]] = [(query, 0, False)]
    while pending:
        node, above, is_known_below = pending.pop()
        if not is_known_below:
            pending.append((node, above, True))
            pending.extend(reversed(list(_below(node, above))))
            continue
        height = 0
        for part, rise in _parts(node):
            below = 0 if part is node else heights.get(id(part), 0)
            height = max(height, below) + rise
            if above + height > DEPTH.most:
                hint = f"at most {DEPTH.most} levels are supported; {DEPTH.remedy}"
                return Diagnostic("nesting", "the query is nested too deeply", part.span, hint)
        heights[id(node)] = height
    return None


def _below(node: ast.Node, above: int) -> Iterator[tuple[ast.Node, int, bool]]:
    """Yield a node's children, each with a lower bound of the levels above it."""
    rises = {id(part): rise for part, rise in _parts(node)}
    for child in _children(node):
        yield child, above + (1 if id(node) in rises else rises.get(id(child), 0)), False


def _parts(node: ast.Node) -> Iterator[tuple[ast.Node, int]]:
    """Yield a node's parts, each with 1 if the engine's tree rises with it, else 0.

    Each operator stands on those before it.

    Of most nodes the last part is the node itself.
    """
    match node:
        case ast.TriplePattern() if _is_plain(node):
            yield node, 2  # its terms are a level of their own
        case ast.Group(elements):
            yield from ((each, int(not _is_plain(each))) for each in elements)
        case ast.Query(form, where):
            items = form.projection if isinstance(form, ast.Select) else (form,)
            columns = {id(each): each for each in (*node.group_by, *node.having, *items)}
            others = (
                each for each in ast.children(node) if each is not form and id(each) not in columns
            )
            yield from ((each, int(each is where)) for each in others)
            yield from ((each, _rise(each)) for each in columns.values())
        case ast.Select(items):
            yield from ((each, _rise(each)) for each in items)
        case ast.Binary(_, left, right):
            yield left, 0
            yield right, 1
        case _:
            yield from ((child, 0) for child in _children(node))
            yield node, 1


def _rise(column: ast.Node) -> int:
    return int(not isinstance(column, ast.Variable))


def _is_plain(element: ast.Node) -> bool:
    """Return True for a triple pattern without a path."""
    return isinstance(element, ast.TriplePattern) and isinstance(
        element.predicate, ast.Iri | ast.Variable
    )


# Width ---------------------------------------------------------------------------------------


def _beyond(counted: Iterable[_Counted]) -> list[Diagnostic]:
    """Return a complaint about the first thing that is beyond each limit."""
    counts: Counter[SizeLimit] = Counter()
    found: dict[SizeLimit, Diagnostic] = {}
    for limit, node, count in counted:
        counts[limit] += count
        if counts[limit] > limit.most and limit not in found:
            found[limit] = _complaint(limit, node)
    return list(found.values())


def _counted(nodes: Iterable[ast.Node]) -> Iterator[_Counted]:
    yield from _columns(nodes)
    for node in nodes:
        match node:
            case ast.Query():
                yield from ((GROUP_KEYS, key, 1) for key in node.group_by)
                yield from ((ORDER_KEYS, key, 1) for key in node.order)
            case ast.AlternativePath(paths):
                yield from ((ALTERNATIVES, path, 1) for path in paths)
            case ast.Group(elements):
                yield PATTERNS, node, 1
                triples = (each for each in elements if isinstance(each, ast.TriplePattern))
                yield from ((PATTERNS, step, 1) for each in triples for step in _steps(each))


def _columns(nodes: Iterable[ast.Node]) -> Iterator[_Counted]:
    """Yield the columns that are named; the engine orders by all that it selects."""
    for node in nodes:
        match node:
            case ast.Select(items) | ast.Values(items):
                yield from ((COLUMNS, item, 1) for item in items)
            case ast.Describe(targets):
                yield from (
                    (COLUMNS, each, 1) for each in targets if isinstance(each, ast.Variable)
                )
            case ast.Construct(template):
                yield from ((COLUMNS, each, 1) for each in dict.fromkeys(_variables(template)))


def _variables(template: Iterable[ast.TriplePattern]) -> Iterator[ast.Variable]:
    return (
        node for triple in template for node in ast.walk(triple) if isinstance(node, ast.Variable)
    )


def _starred(query: ast.Query, nodes: Iterable[ast.Node]) -> Iterator[_Counted]:
    """Yield the columns that ``*`` stands for, where results are ordered by them."""
    for node in nodes:
        match node:
            case ast.Query(ast.Select(())) if node is query or _is_cut(node):
                yield COLUMNS, node.form, len(selected(node))
            case ast.Query(ast.Describe(()), ast.Group() as where) if _is_cut(node):
                yield COLUMNS, node.form, len(visible(where))


def _is_cut(query: ast.Query) -> bool:
    return query.limit is not None or query.offset is not None


# Joins ---------------------------------------------------------------------------------------


def _crowded(nodes: Iterable[ast.Node]) -> list[Diagnostic]:
    """Return the complaints about the first group that joins too much.

    The engine compares each of the joined with each other.
    """
    groups = (node for node in nodes if isinstance(node, ast.Group))
    return next((found for group in groups if (found := _beyond(_joined(group)))), [])


def _joined(group: ast.Group) -> Iterator[_Counted]:
    """Yield what the engine joins in one go: braces, WINDOW and GRAPH make no difference to it."""
    pending: list[ast.Node] = [group]
    while pending:
        node = pending.pop()
        match node:
            case ast.Group(elements):
                pending.extend(reversed(elements))
            case ast.WindowPattern() | ast.GraphPattern():
                pending.append(node.group)
            case ast.TriplePattern():
                yield from ((JOINED, step, 1) for step in _steps(node))
            case ast.ServicePattern() | ast.UnionPattern() | ast.Values() | ast.SubSelect():
                yield JOINED, node, 1
            case ast.OptionalPattern():
                yield OPTIONALS, node, 1


# Paths ---------------------------------------------------------------------------------------


def _steps(triple: ast.TriplePattern) -> Iterator[ast.Node]:
    """Yield the joined parts of a triple pattern: the steps of a sequence path, or the pattern."""
    pending: list[ast.Node] = [triple.predicate]
    while pending:
        match pending.pop():
            case ast.SequencePath(paths):
                pending.extend(reversed(paths))
            case ast.InversePath(ast.SequencePath() as path):
                pending.append(path)
            case step:
                # Several objects share what stands before them.
                yield triple.object if step is triple.predicate else step


def _nested_steps(nodes: Iterable[ast.Node]) -> list[Diagnostic]:
    """Return the complaint about the first path with too many nested steps.

    Each of them doubles the engine's work.
    """
    triples = (node for node in nodes if isinstance(node, ast.TriplePattern))
    paths = (each.predicate for each in triples if not isinstance(each.predicate, ast.Variable))
    beyond = (found for path in paths if (found := _step_beyond(path, 0, is_nested=False)))
    return [_complaint(NESTED_STEPS, step) for step in beyond][:1]


def _step_beyond(path: ast.Path, spent: int, *, is_nested: bool) -> ast.Path | None:
    match path:
        case ast.SequencePath(inner):
            slashes = len(inner) - 1 if is_nested else 0
            if spent + slashes > NESTED_STEPS.most:
                return inner[NESTED_STEPS.most - spent + 1]
            spent += slashes
        case ast.AlternativePath(inner):
            is_nested = True
        case ast.RepeatedPath(only):
            inner, is_nested = (only,), True
        case ast.InversePath(only):
            inner = (only,)
        case _:
            return None
    return next(
        (found for each in inner if (found := _step_beyond(each, spent, is_nested=is_nested))), None
    )
