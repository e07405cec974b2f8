"""Past values of a stream: the part of a query that says them, and the key they are known by."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.split_sources import as_graphs
from rspql.plan import PastValue, StreamPast
from rspql.scope import visible

BEFORE = "urn:acquatop:before:"
"""Beginning of the IRIs of the patterns where past values of a stream are joined."""


def with_stream_past(
    query: ast.Query, past: Iterable[PastValue], found: list[Diagnostic]
) -> tuple[ast.Query, tuple[StreamPast, ...]]:
    """Return a query that joins past values of its stream, and where they come from.

    Notes those that no WINDOW of the query itself says by a key, and those of elements: their
    windows close with elements, so none of them stands for a time.
    """
    if query.where is None:
        return query, ()
    counts = any(clause.counts for clause in query.windows)
    elements: list[ast.Pattern] = []
    before: list[StreamPast] = []
    rest = list(past)
    for element in query.where.elements:
        elements.append(element)
        wanted = [each for each in rest if _says(element, each.variable)]
        if counts and wanted:
            found.extend(_of_elements(each) for each in wanted)
            return query, ()
        keys = {each: _keys(element, each.variable) for each in wanted}
        for names in dict.fromkeys(keys.values()):
            if names:
                pattern = ast.ServicePattern(ast.Iri(f"{BEFORE}{len(before)}"), ast.Group(()))
                own = tuple(each for each in wanted if keys[each] == names)
                source = as_graphs(ast.Group((element,)))
                before.append(StreamPast(pattern, names, source, own))
                elements.append(pattern)
                rest = [each for each in rest if each not in own]
    for each in rest:
        message = f"neither a SERVICE nor a WINDOW says ?{each.variable} by a key"
        hint = "compute it in a sub-query with GROUP BY, or say it of a variable subject"
        found.append(Diagnostic("change", message, each.span, hint))
    return replace(query, where=replace(query.where, elements=tuple(elements))), tuple(before)


def _of_elements(past: PastValue) -> Diagnostic:
    message = f"?{past.variable} is of a window that counts elements: it has no values of a time"
    return Diagnostic("change", message, past.span, "use a window over time: [RANGE 9m STEP 3m]")


def _says(element: ast.Pattern, variable: str) -> bool:
    if not isinstance(element, ast.WindowPattern | ast.SubSelect):
        return False
    nodes = list(ast.walk(element))
    return (
        any(isinstance(node, ast.WindowPattern) for node in nodes)
        and not any(isinstance(node, ast.ServicePattern) for node in nodes)
        and variable in visible(ast.Group((element,)))
    )


def _keys(element: ast.Pattern, variable: str) -> tuple[str, ...]:
    """Return the variables by which a value is known: those of GROUP BY, or the subject."""
    groups = [node.query for node in ast.walk(element) if isinstance(node, ast.SubSelect)]
    shown = visible(ast.Group((element,)))
    if groups:
        keys = [key for query in groups for key in query.group_by]
        names = [key.name for key in keys if isinstance(key, ast.Variable) and key.name in shown]
        return tuple(dict.fromkeys(names)) if len(names) == len(keys) else ()
    subjects = {
        node.subject.name
        for node in ast.walk(element)
        if isinstance(node, ast.TriplePattern)
        and node.object == ast.Variable(variable)
        and isinstance(node.subject, ast.Variable)
    }
    return tuple(sorted(subjects & shown.keys()))
