"""Split a query by source: windows, remotes, and the key by which each remote is queried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.plan import AnyWindow, CountWindow, RemotePart, StreamPast, Window
from rspql.scope import certain, certain_in, visible


@dataclass(frozen=True)
class Sources:
    """The windows that a query declares, and the parts that remotes answer.

    The services whose IRIs are in ``records`` match triple patterns alone, and filter nothing.
    """

    windows: tuple[AnyWindow, ...]
    remotes: tuple[RemotePart, ...]
    records: frozenset[str] = frozenset()
    before: tuple[StreamPast, ...] = ()


def split_sources(query: ast.Query, found: list[Diagnostic]) -> Sources:
    """Return the sources of a normalised query; append to ``found`` what cannot be answered."""
    windows = tuple(
        _window(clause, clause.window)
        for clause in query.windows
        if isinstance(clause.window, ast.Iri)
    )
    _check_places(query, found)
    finder = _RemoteFinder()
    if query.where is not None:
        finder.visit(query.where, ())
    found.extend(_unjoined(query, finder.parts))
    return Sources(windows, tuple(finder.parts))


def _window(clause: ast.WindowClause, name: ast.Iri) -> AnyWindow:
    if clause.counts:
        return CountWindow(name, clause.stream, clause.width, clause.slide, clause.triples)
    return Window(name, clause.stream, clause.width, clause.slide, clause.start_ms)


def as_graphs(node: ast.Group) -> ast.Group:
    """Return a group with every WINDOW pattern turned into a GRAPH pattern on the window's name."""
    return ast.rewritten(node, window_to_graph)


def window_to_graph(node: ast.Node) -> ast.Node:
    """Return the GRAPH pattern of a WINDOW pattern; return any other node as it is."""
    if isinstance(node, ast.WindowPattern):
        return ast.GraphPattern(node.window, node.group, span=node.span)
    return node


def _unjoined(query: ast.Query, parts: Sequence[RemotePart]) -> Iterator[Diagnostic]:
    """Yield a warning for every remote part that nothing joins with a window."""
    patterns = [node for node in ast.walk(query) if isinstance(node, ast.WindowPattern)]
    joined = _joined({name for each in patterns for name in visible(each.group)}, query, parts)
    for part in parts:
        if patterns and joined.isdisjoint(part.variables):
            message = (
                "the SERVICE shares no variable with a WINDOW: every combination is a solution"
            )
            yield Diagnostic(
                "no-join",
                message,
                part.pattern.span,
                "use one name for what must be the same",
                "warning",
            )


def _joined(names: set[str], query: ast.Query, parts: Sequence[RemotePart]) -> set[str]:
    """Return all variables that depend on some, directly or through other parts of the query."""
    between = (ast.Assignment, ast.Filter, ast.Values, ast.SubSelect)
    links = [set(part.variables) for part in parts]
    nodes = ast.walk(query.where) if query.where else ()
    links += [_mentioned(node) for node in nodes if isinstance(node, between)]
    joined, apart = set(names), links
    while any(not joined.isdisjoint(each) for each in apart):
        joined.update(*(each for each in apart if not joined.isdisjoint(each)))
        apart = [each for each in apart if joined.isdisjoint(each)]
    return joined


def _mentioned(node: ast.Node) -> set[str]:
    return {each.name for each in ast.walk(node) if isinstance(each, ast.Variable)}


def _check_places(query: ast.Query, found: list[Diagnostic]) -> None:
    for node in ast.walk(query):
        if isinstance(node, ast.ServicePattern):
            if isinstance(node.service, ast.Variable):
                message = (
                    "SERVICE with a variable is not supported: only what the catalog names is "
                    "contacted"
                )
                found.append(
                    Diagnostic("unsupported", message, node.service.span, "name the service")
                )
            for inner in ast.walk(node.group):
                if isinstance(inner, ast.WindowPattern):
                    message = (
                        "a WINDOW cannot stand within a SERVICE: the remote does not have the "
                        "stream"
                    )
                    found.append(
                        Diagnostic(
                            "window-in-service", message, inner.span, "move it out of the SERVICE"
                        )
                    )
        elif isinstance(node, ast.Exists):
            for inner in ast.walk(node.group):
                if isinstance(inner, ast.ServicePattern):
                    message = "SERVICE within EXISTS is not supported"
                    hint = "join with the SERVICE pattern, or use MINUS"
                    found.append(Diagnostic("unsupported", message, inner.span, hint))


class _RemoteFinder:
    """Finder of the SERVICE patterns and, for each, a pattern that binds every key that can matter.

    Such a pattern must be joined with everything that the SERVICE pattern is joined with. It stands
    in the same group, or in one around it with only joins and unions between. For an OPTIONAL or
    MINUS only the elements before it in its own group count, because they alone decide what it adds
    or removes.
    """

    def __init__(self) -> None:
        self._parts: dict[ast.ServicePattern, RemotePart] = {}

    @property
    def parts(self) -> list[RemotePart]:
        """The parts found, in the order of their first occurrence."""
        return list(self._parts.values())

    def visit(self, group: ast.Group, around: Sequence[ast.Pattern]) -> None:
        joined = [*around, *(each for each in group.elements if _is_source(each))]
        before: list[ast.Pattern] = []
        for element in group.elements:
            self._element(element, joined, before)
            if _is_source(element):
                before.append(element)

    def _element(
        self, element: ast.Pattern, joined: Sequence[ast.Pattern], before: Sequence[ast.Pattern]
    ) -> None:
        match element:
            case ast.ServicePattern():
                self._add(element, joined)
            case ast.OptionalPattern(group) | ast.MinusPattern(group):
                self.visit(group, before)
            case ast.UnionPattern(groups):
                for group in groups:
                    self.visit(group, joined)
            case ast.Group():
                self.visit(element, joined)
            case ast.GraphPattern(_, group) | ast.WindowPattern(_, group):
                self.visit(group, ())
            case ast.SubSelect(query) if query.where is not None:
                self.visit(query.where, ())

    def _add(self, pattern: ast.ServicePattern, sources: Sequence[ast.Pattern]) -> None:
        if not isinstance(pattern.service, ast.Iri):
            return
        key, source = _key_of(pattern, sources)
        before = self._parts.get(pattern)
        if before is not None:
            key, source = _merged(before, key, source)
        self._parts[pattern] = RemotePart(
            pattern, pattern.service, tuple(visible(pattern.group)), key, source
        )


def _is_source(element: ast.Pattern) -> bool:
    """Return True if an element can be evaluated for its keys without querying a remote."""
    if not isinstance(
        element, ast.WindowPattern | ast.SubSelect | ast.Group | ast.Values | ast.GraphPattern
    ):
        return False
    return not any(isinstance(node, ast.ServicePattern) for node in ast.walk(element))


def _key_of(
    pattern: ast.ServicePattern, sources: Iterable[ast.Pattern]
) -> tuple[str | None, ast.Group | None]:
    """Return the first variable that the remote's part and a source always bind, and the source."""
    wanted = certain(pattern.group)
    for source in sources:
        for name in certain_in(source):
            if name in wanted:
                return name, as_graphs(ast.Group((source,)))
    return None, None


def _merged(
    part: RemotePart, key: str | None, source: ast.Group | None
) -> tuple[str | None, ast.Group | None]:
    """Return the key and source for a pattern that stands in two places: the needs of both."""
    if part.key_source is None or source is None or part.key != key:
        return None, None
    if part.key_source == source:
        return key, source
    return key, ast.Group((ast.UnionPattern((part.key_source, source)),))


def without_windows(query: ast.Query) -> ast.Query:
    """Return a query with every WINDOW pattern turned into a GRAPH pattern on the window's name."""
    return replace(
        ast.rewritten(query, window_to_graph), windows=(), registration=None, output=None
    )
