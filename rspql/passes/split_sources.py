"""Split a WHERE clause by where each part is answered: a window, a service, or neither."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rspql import ast
from rspql.diagnostics import Diagnostic, nearest


@dataclass(frozen=True)
class Sources:
    """The parts of a WHERE clause, each with the triple patterns that belong to it."""

    window: ast.WindowClause
    stream_pattern: tuple[ast.TriplePattern, ...]
    service: ast.ServicePattern
    remote_pattern: tuple[ast.TriplePattern, ...]
    assignments: tuple[ast.Assignment, ...]


def split_sources(query: ast.SelectQuery, found: list[Diagnostic]) -> Sources | None:
    """Return the query's one window part and one service part, or None with the reasons in ``found``."""
    windows = [part for part in query.where.elements if isinstance(part, ast.WindowPattern)]
    services = [part for part in query.where.elements if isinstance(part, ast.ServicePattern)]
    assignments = tuple(part for part in query.where.elements if isinstance(part, ast.Assignment))
    _reject_the_rest(query.where, found)
    _check_windows(query.windows, windows, found)
    _expect_one("WINDOW", windows, query.where, found)
    _expect_one("SERVICE", services, query.where, found)
    if not (windows and services and query.windows):
        return None
    declared = {clause.window: clause for clause in query.windows}
    # An undeclared window has been reported; any clause stands in, so that the passes to come report the rest.
    clause = declared.get(windows[0].window, query.windows[0])
    stream_pattern = _triples(windows[0].group, found)
    remote_pattern = _triples(services[0].group, found)
    return Sources(clause, stream_pattern, services[0], remote_pattern, assignments)


def variables_of(pattern: Iterable[ast.TriplePattern]) -> tuple[str, ...]:
    """Return the names of a pattern's variables in the order of their first occurrence."""
    terms = (term for triple in pattern for term in (triple.subject, triple.predicate, triple.object))
    return tuple(dict.fromkeys(term.name for term in terms if isinstance(term, ast.Variable)))


def _triples(group: ast.Group, found: list[Diagnostic]) -> tuple[ast.TriplePattern, ...]:
    for element in group.elements:
        if not isinstance(element, ast.TriplePattern):
            message = "only triple patterns are supported here so far"
            found.append(Diagnostic("unsupported", message, element.span))
    triples = tuple(element for element in group.elements if isinstance(element, ast.TriplePattern))
    if not triples:
        found.append(Diagnostic("empty-pattern", "there is no triple pattern between these braces", group.span))
    return triples


def _reject_the_rest(where: ast.Group, found: list[Diagnostic]) -> None:
    for element in where.elements:
        if isinstance(element, ast.Filter):
            found.append(Diagnostic("unsupported", "FILTER is not supported yet", element.span))
        elif isinstance(element, ast.TriplePattern):
            message = "a triple pattern outside WINDOW and SERVICE is not supported yet"
            found.append(Diagnostic("unsupported", message, element.span, "move it into a WINDOW or SERVICE pattern"))


def _expect_one(keyword: str, parts: Sequence[ast.Node], where: ast.Group, found: list[Diagnostic]) -> None:
    if not parts:
        message = f"the query has no {keyword} pattern"
        found.append(Diagnostic("no-" + keyword.lower(), message, where.span, f"add {keyword} … {{ … }}"))
    for part in parts[1:]:
        message = f"more than one {keyword} pattern is not supported yet"
        found.append(Diagnostic("unsupported", message, part.span))


def _check_windows(
    clauses: Sequence[ast.WindowClause], patterns: Sequence[ast.WindowPattern], found: list[Diagnostic]
) -> None:
    declared: dict[str, ast.WindowClause] = {}
    for clause in clauses:
        if declared.setdefault(clause.window.value, clause) is not clause:
            message = f"the window <{clause.window.value}> is declared twice"
            found.append(Diagnostic("duplicate-window", message, clause.window.span))
    used = {pattern.window.value for pattern in patterns}
    for pattern in patterns:
        if pattern.window.value not in declared:
            near = nearest(pattern.window.value, declared)
            hint = f"did you mean <{near}>?" if near else "add FROM NAMED WINDOW … ON … [RANGE … STEP …]"
            message = f"the window <{pattern.window.value}> is used but not declared"
            found.append(Diagnostic("undeclared-window", message, pattern.window.span, hint))
    for clause in clauses:
        if clause.window.value not in used:
            message = f"the window <{clause.window.value}> is declared but never used"
            found.append(Diagnostic("unused-window", message, clause.window.span))
