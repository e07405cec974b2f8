"""Recognise the class that is answered incrementally: join, score, ORDER BY, LIMIT."""

from __future__ import annotations

from collections.abc import Iterable

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.split_sources import Sources, variables_of
from rspql.plan import Score, Service, TopKPlan, Window
from rspql.scoring import check_expression, variables_in


def recognise_topk(query: ast.SelectQuery, sources: Sources, found: list[Diagnostic]) -> TopKPlan | None:
    """Return the top-k plan of a query, or None with the reasons in ``found``."""
    stream = variables_of(sources.stream_pattern)
    remote = variables_of(sources.remote_pattern)
    assigned = _assignments(query, sources, {*stream, *remote}, found)
    _check_output(query, found)
    join = _join_variables(sources, stream, remote, found)
    score = _score(query, assigned, stream, remote, found)
    projection = _projection(query, [*stream, *remote, *assigned], score, found)
    if query.limit is None:
        hint = "add LIMIT k: how many results are wanted"
        found.append(Diagnostic("no-limit", "the query has no LIMIT", query.span, hint))
    elif query.limit < 1:
        found.append(Diagnostic("limit", "LIMIT must be at least 1", query.span))
    if found or score is None or query.limit is None:
        return None
    clause = sources.window
    return TopKPlan(
        name=query.registration.name.value if query.registration else None,
        window=Window(clause.window, clause.stream, clause.width_ms, clause.slide_ms),
        stream_pattern=sources.stream_pattern,
        stream_variables=stream,
        service=Service(sources.service.service, sources.remote_pattern, remote),
        join_variables=join,
        score=score,
        k=query.limit,
        projection=projection,
    )


def _assignments(
    query: ast.SelectQuery, sources: Sources, bound: set[str], found: list[Diagnostic]
) -> dict[str, ast.Expression]:
    selected = (item for item in query.projection if isinstance(item, ast.Assignment))
    assigned: dict[str, ast.Expression] = {}
    for item in (*sources.assignments, *selected):
        name = item.variable.name
        if name in assigned or name in bound:
            found.append(
                Diagnostic("bound-twice", f"?{name} is bound already", item.variable.span, "choose another name")
            )
        assigned[name] = item.expression
    return assigned


def _check_output(query: ast.SelectQuery, found: list[Diagnostic]) -> None:
    if query.registration and query.registration.output != "RSTREAM":
        message = f"{query.registration.output} is not supported yet"
        found.append(Diagnostic("unsupported", message, query.registration.span, "use RSTREAM"))


def _join_variables(
    sources: Sources, stream: tuple[str, ...], remote: tuple[str, ...], found: list[Diagnostic]
) -> tuple[str, ...]:
    shared = tuple(name for name in stream if name in remote)
    if not shared:
        message = "the WINDOW and SERVICE patterns share no variable to join on"
        found.append(Diagnostic("no-join", message, sources.service.span))
    elif len(shared) > 1:
        message = f"a join on more than one variable ({', '.join('?' + name for name in shared)}) is not supported yet"
        found.append(Diagnostic("unsupported", message, sources.service.span))
    return shared


def _score(
    query: ast.SelectQuery,
    assigned: dict[str, ast.Expression],
    stream: tuple[str, ...],
    remote: tuple[str, ...],
    found: list[Diagnostic],
) -> Score | None:
    if not query.order:
        message = "the query has no ORDER BY, so nothing says which results are the top"
        found.append(Diagnostic("no-order", message, query.span, "add ORDER BY DESC(?score) before LIMIT"))
        return None
    found.extend(
        Diagnostic("unsupported", "more than one ORDER BY key is not supported yet", extra.span)
        for extra in query.order[1:]
    )
    ordered = query.order[0].expression
    variable = ordered.name if isinstance(ordered, ast.Variable) and ordered.name in assigned else None
    expression = assigned[variable] if variable is not None else ordered
    check_expression(expression, found)
    used = variables_in(expression)
    for name, span in used.items():
        if name not in stream and name not in remote:
            found.append(Diagnostic("unbound", f"nothing binds ?{name}, which the score needs", span))
    return Score(
        expression=expression,
        descending=query.order[0].descending,
        variable=variable,
        stream_variables=tuple(name for name in used if name in stream),
        remote_variables=tuple(name for name in used if name in remote and name not in stream),
    )


def _projection(
    query: ast.SelectQuery, bound: Iterable[str], score: Score | None, found: list[Diagnostic]
) -> tuple[str, ...]:
    known = tuple(dict.fromkeys(bound))
    if not query.projection:
        return known
    names = []
    for item in query.projection:
        variable = item.variable if isinstance(item, ast.Assignment) else item
        if variable.name not in known:
            message = f"?{variable.name} is selected but nothing binds it"
            found.append(Diagnostic("unbound", message, variable.span))
        elif isinstance(item, ast.Assignment) and score and variable.name != score.variable:
            message = f"the expression for ?{variable.name} is not what ORDER BY names; only the score is supported yet"
            found.append(Diagnostic("unsupported", message, item.span))
        names.append(variable.name)
    return tuple(names)
