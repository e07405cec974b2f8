"""Check windows: each declared and used, declared once, with reasonable sizes."""

from __future__ import annotations

from collections.abc import Iterator

from rspql import ast
from rspql.diagnostics import Diagnostic, nearest


def check_windows(query: ast.Query, found: list[Diagnostic]) -> None:
    """Append to ``found`` the problems of a normalised query's windows."""
    if not query.windows:
        hint = (
            "add FROM NAMED WINDOW … ON … [RANGE … STEP …], or let it be the top k of one SERVICE"
        )
        message = "the query has no window, so nothing says when to answer it"
        found.append(Diagnostic("no-window", message, query.form.span, hint))
    clauses: dict[str, ast.WindowClause] = {}
    for clause in query.windows:
        found.extend(_clause_problems(clause, query))
        if (
            isinstance(clause.window, ast.Iri)
            and clauses.setdefault(clause.window.value, clause) is not clause
        ):
            message = f"the window <{clause.window.value}> is declared twice"
            found.append(Diagnostic("duplicate-window", message, clause.window.span))
    patterns = [node for node in ast.walk(query) if isinstance(node, ast.WindowPattern)]
    for pattern in patterns:
        found.extend(_use_problems(pattern, clauses))
    found.extend(_count_problems(query))
    used = {pattern.window.value for pattern in patterns if isinstance(pattern.window, ast.Iri)}
    any_graph = any(
        isinstance(node, ast.GraphPattern) and isinstance(node.graph, ast.Variable)
        for node in ast.walk(query)
    )
    unused = {} if any_graph else {name: clauses[name] for name in clauses if name not in used}
    outside = None if used else _outside(query)
    for name, clause in unused.items():
        message = f"the window <{name}> is declared but never used"
        hint = "add WINDOW … { … } to the pattern, or take the declaration away"
        span, code = clause.window.span, "unused-window"
        if outside is not None:
            message, span = "this stands outside WINDOW: nothing of the stream matches it", outside
            hint, code = (
                f"write WINDOW <{name}> {{ … }} around what the stream says",
                "outside-window",
            )
        found.append(Diagnostic(code, message, span, hint))


def _outside(query: ast.Query) -> ast.Span | None:
    """Return the place of the first triple that stands in no pattern of its own."""
    elements = query.where.elements if query.where else ()
    return next((each.span for each in elements if isinstance(each, ast.TriplePattern)), None)


def _clause_problems(clause: ast.WindowClause, query: ast.Query) -> Iterator[Diagnostic]:
    if isinstance(clause.window, ast.Variable):
        yield Diagnostic(
            "unsupported",
            "a window's name must be an IRI: parameters are not supported",
            clause.window.span,
        )
    if clause.slide > clause.width:
        size, what = ("the window", "comes") if clause.counts else ("RANGE", "happens")
        message = f"STEP is larger than {size}: what {what} between two windows is in none of them"
        yield Diagnostic("gap-between-windows", message, clause.span, severity="warning")
    every = query.registration.every_ms if query.registration else None
    if every is not None and (clause.counts or every != clause.slide):
        message = "COMPUTED EVERY differs from the window's STEP, which is when answers are due"
        hint = "leave COMPUTED EVERY out" + ("" if clause.counts else ", or make STEP the same")
        assert query.registration is not None
        yield Diagnostic("unsupported", message, query.registration.span, hint)


def _count_problems(query: ast.Query) -> Iterator[Diagnostic]:
    """Yield the reason against running a query that counts elements, if there is one."""
    counting = next((clause for clause in query.windows if clause.counts), None)
    if counting is None:
        return
    others = (
        clause for clause in query.windows if not clause.counts or clause.stream != counting.stream
    )
    for other in others:
        message = (
            "a window that counts elements can stand only beside others that count the same "
            "stream: nothing else says which of their closes comes first"
        )
        yield Diagnostic(
            "unsupported",
            message,
            other.span,
            "let all windows count one stream, or none: [RANGE 9m STEP 3m]",
        )
        return


def _use_problems(
    pattern: ast.WindowPattern, clauses: dict[str, ast.WindowClause]
) -> Iterator[Diagnostic]:
    assert isinstance(pattern.window, ast.Iri), "normalise leaves no other"
    if pattern.window.value not in clauses:
        near = nearest(pattern.window.value, clauses)
        hint = (
            f"did you mean <{near}>?" if near else "add FROM NAMED WINDOW … ON … [RANGE … STEP …]"
        )
        message = f"the window <{pattern.window.value}> is used but not declared"
        yield Diagnostic("undeclared-window", message, pattern.window.span, hint)
