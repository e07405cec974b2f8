"""Read a query without a window: the top k of what one SERVICE says, a table that changes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.passes.exact_calls import ExactCalls
from rspql.passes.plan_windowed import OWN_FUNCTIONS, VOLATILE, plan_windowed
from rspql.passes.recognise_topk import Ranking, recognise_topk
from rspql.passes.split_sources import Sources, split_sources
from rspql.plan import TableRanking, WindowedPlan
from rspql.scope import certain, visible
from rspql.scoring import FunctionRegistry, check_expression, to_sparql

CLOCK = "urn:acquatop:clock"
"""Name of the window that the clock fills; with a colon and milliseconds, of the clock's stream."""
LOOKS_MS = 1_000
"""Time between two looks at a table whose changes are answered."""


def service_alone(query: ast.Query) -> ast.ServicePattern | None:
    """Return the one SERVICE of a normalised query without a window, if it ranks what that says.

    Beside it stand only filters, BINDs and VALUES.
    """
    if query.windows or query.where is None:
        return None
    asked = [each for each in query.where.elements if isinstance(each, ast.ServicePattern)]
    beside = (ast.Filter, ast.Assignment, ast.Values, ast.ServicePattern)
    services = [each for each in ast.walk(query) if isinstance(each, ast.ServicePattern)]
    is_alone = len(asked) == len(services) == 1 and isinstance(asked[0].service, ast.Iri)
    if not is_alone or not all(isinstance(each, beside) for each in query.where.elements):
        return None
    return asked[0]


def with_clock(query: ast.Query, service: ast.ServicePattern) -> ast.Query:
    """Return a query with the clock's window, which closes whenever the table is looked at."""
    every = query.registration.every_ms if query.registration else None
    pace = every or LOOKS_MS
    name, stream = ast.Iri(CLOCK, span=service.span), ast.Iri(f"{CLOCK}:{pace}", span=service.span)
    return replace(query, windows=(ast.WindowClause(name, stream, pace, pace),))


def plan_table(
    query: ast.Query,
    service: ast.ServicePattern,
    output: str,
    functions: FunctionRegistry,
    found: list[Diagnostic],
) -> tuple[WindowedPlan, Ranking] | None:
    """Return the plan of a query with the clock's window, and its ranking.

    None, and diagnostics, if what the SERVICE says is not ranked by a number.
    """
    sources = split_sources(query, found)
    ranking = recognise_topk(query, found, needs_window=False)
    problems = list(_problems(query, service, ranking, functions))
    found.extend(problems)
    if problems or not isinstance(ranking, Ranking):
        return None
    plain = plan_windowed(query, sources, ranking, output, functions, is_numeric=True)
    exact = plan_windowed(
        query, sources, ranking, output, functions, calls=ExactCalls(functions), is_numeric=True
    )
    table = _table(query, plain, sources, ranking)
    refused = [name for name in _called(table.ranked) if _is_refused(name)]
    if refused:
        found.append(_unsupported(f"{refused[0]} is none that a remote computes alike", service))
        return None
    return replace(plain, exact=exact if exact.computed else None, table=table), ranking


def _called(query: ast.Query) -> Iterator[str]:
    calls = (node for node in ast.walk(query) if isinstance(node, ast.Call))
    for call in calls:
        yield call.function.value if isinstance(call.function, ast.Iri) else call.function


def _is_refused(name: str) -> bool:
    return name in VOLATILE or name.startswith(OWN_FUNCTIONS)


def _table(
    query: ast.Query, plain: WindowedPlan, sources: Sources, ranking: Ranking
) -> TableRanking:
    (part,) = plain.remotes or sources.remotes
    rank = plain.query.order[0].expression
    assert isinstance(rank, ast.Variable), "an arithmetic score has a variable"
    names = tuple(visible(part.pattern.group))
    shown = tuple(map(ast.Variable, (*names, rank.name)))
    ranked = replace(
        plain.query, form=ast.Select(shown), order=(), limit=None, offset=None, windows=()
    )
    registration = query.registration
    return TableRanking(
        pattern=part.pattern,
        iri=part.iri,
        key=_key_of(part.pattern) or "",
        variables=names,
        ranked=ranked,
        rank=rank.name,
        score=ranking.expression or rank,
        beside=tuple(
            each for each in query.where.elements if not isinstance(each, ast.ServicePattern)
        )
        if query.where
        else (),
        descending=ranking.descending,
        k=ranking.k + ranking.offset,
        on_change=registration is None or registration.every_ms is None,
    )


def _key_of(service: ast.ServicePattern) -> str | None:
    """Return the variable that is the subject of a pattern's first triple."""
    triples = [each for each in service.group.elements if isinstance(each, ast.TriplePattern)]
    subject = triples[0].subject if triples else None
    is_key = isinstance(subject, ast.Variable) and subject.name in certain(service.group)
    return subject.name if is_key and isinstance(subject, ast.Variable) else None


def _problems(
    query: ast.Query,
    service: ast.ServicePattern,
    ranking: Ranking | Diagnostic,
    functions: FunctionRegistry,
) -> Iterator[Diagnostic]:
    """Yield the reasons why a query is no top k of a table."""
    if isinstance(ranking, Diagnostic):
        yield replace(ranking, code="no-window", severity="error", message=_why(ranking.message))
        return
    assert isinstance(query.form, ast.Select)
    if query.form.duplicates or query.group_by or query.having or query.cut is not None:
        yield _unsupported("it groups, or makes rows one, or takes more than the LIMIT", service)
    key = _key_of(service)
    if key is None:
        yield _unsupported("the pattern does not begin with a variable as subject", service)
    for each in ranking.more_keys:
        if each.descending or each.expression != ast.Variable(key or ""):
            message = "equal scores are ordered by the subject, and by nothing else"
            yield Diagnostic("unsupported", _why(message), each.span)
    mistakes: list[Diagnostic] = []
    expression = ranking.expression
    if expression is None:
        yield _unsupported("its score is too large", service)
        return
    check_expression(expression, mistakes, functions=functions)
    if mistakes or to_sparql(expression, functions, doubles=True) is None:
        why = mistakes[0].message if mistakes else "it is no arithmetic"
        yield _unsupported(f"it must be ordered by a number: {why}", service)


def _why(reason: str) -> str:
    return f"a query without a window is the top k of one SERVICE, by a number, but {reason}"


def _unsupported(reason: str, service: ast.ServicePattern) -> Diagnostic:
    return Diagnostic("unsupported", _why(reason), service.span)
