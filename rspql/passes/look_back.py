"""Rewrite calls that look back: the change of a value over some time, and decay by age."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeGuard

from rspql import ast
from rspql.built_ins import CHANGE, CHANGES
from rspql.diagnostics import Diagnostic
from rspql.durations import milliseconds
from rspql.plan import PastValue, RemotePart
from rspql.scope import visible

AGE_DECAY = "urn:acquatop:function:age-decay"
"""Function of now, an instant, and a half-life in seconds, which the engine provides."""
_DURATIONS = tuple(ast.XSD + each for each in ("duration", "dayTimeDuration", "string"))


def look_back(query: ast.Query, found: list[Diagnostic]) -> tuple[ast.Query, tuple[PastValue, ...]]:
    """Return a query without such calls, and the past values that it needs of remotes.

    The value of some time ago is a variable of its own, which the remote's replica binds.
    """
    calls = [node for node in ast.walk(query) if _is_change(node)]
    if not calls:
        return query, ()
    problems = list(_misplaced(query))
    taken = {node.name for node in ast.walk(query) if isinstance(node, ast.Variable)}
    past: dict[tuple[str, int], PastValue] = {}

    def changed(node: ast.Node) -> ast.Node:
        if not _is_change(node):
            return node
        back_ms = _duration(node, problems)
        if back_ms is None:
            return node
        subject = node.arguments[0]
        if _name(node) == "decay":
            seconds = ast.Literal(repr(back_ms / 1000), ast.XSD + "double")
            arguments = (ast.Call("now", ()), subject, seconds)
            return ast.Call(ast.Iri(AGE_DECAY), arguments, span=node.span)
        if not isinstance(subject, ast.Variable):
            hint = "name the variable of the SERVICE"
            message = f"change:{_name(node)} looks back at a variable"
            problems.append(Diagnostic("change", message, node.span, hint))
            return node
        each = past.setdefault(
            (subject.name, back_ms), _past(subject.name, back_ms, taken, node.span)
        )
        return _FORMULAS[_name(node)](subject, ast.Variable(each.name), back_ms)

    rewritten = ast.rewritten(_with_names(query), changed)
    found.extend(problems)
    return rewritten, tuple(past.values())


def with_past(
    parts: Iterable[RemotePart], past: Iterable[PastValue], found: list[Diagnostic]
) -> tuple[tuple[RemotePart, ...], tuple[PastValue, ...]]:
    """Return remote parts with the past values that each binds, and those that none does."""
    parts, past = tuple(parts), tuple(past)
    bound = {name: part for part in parts for name in part.variables}
    for each in past:
        if each.variable in bound and bound[each.variable].key is None:
            message = f"?{each.variable} is fetched whole, without a key to remember it by"
            hint = "share a variable between the SERVICE and a WINDOW"
            found.append(Diagnostic("change", message, each.span, hint))
    own = tuple(
        replace(part, past=tuple(each for each in past if each.variable in part.variables))
        for part in parts
    )
    return own, tuple(each for each in past if each.variable not in bound)


def _is_change(node: ast.Node) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.function, ast.Iri)
        and node.function.value.startswith(CHANGE)
        and node.function.value in CHANGES
    )


def _name(node: ast.Call) -> str:
    assert isinstance(node.function, ast.Iri)
    return node.function.value.removeprefix(CHANGE)


def _duration(node: ast.Call, problems: list[Diagnostic]) -> int | None:
    """Return the length of time in a call's second argument."""
    given = node.arguments[1] if len(node.arguments) == 2 else None
    message = f"change:{_name(node)} takes a value and a duration"
    if isinstance(given, ast.Literal) and given.datatype in _DURATIONS:
        try:
            return milliseconds(given.lexical)
        except ValueError as error:
            message = str(error)
    hint = f'write change:{_name(node)}(?value, "PT10M"^^xsd:duration)'
    problems.append(Diagnostic("change", message, node.span, hint))
    return None


def _past(variable: str, back_ms: int, taken: set[str], span: ast.Span | None) -> PastValue:
    name = f"{variable}_{back_ms}ms_ago"
    while name in taken:
        name += "_"
    return PastValue(name, variable, back_ms, span)


def _misplaced(query: ast.Query) -> Iterator[Diagnostic]:
    """Yield the calls that stand where no past value is bound."""
    for node in ast.walk(query):
        if isinstance(node, ast.ServicePattern | ast.SubSelect | ast.Exists):
            for call in ast.walk(node):
                if _is_change(call) and _name(call) != "decay":
                    message = f"change:{_name(call)} within a SERVICE, sub-query or EXISTS"
                    hint = "use it beside the SERVICE"
                    yield Diagnostic("change", f"{message} is not supported", call.span, hint)


def _with_names(query: ast.Query) -> ast.Query:
    """Return a query whose ``SELECT *`` names its variables: the past ones are not among them."""
    if isinstance(query.form, ast.Select) and not query.form.projection and query.where:
        names = tuple(map(ast.Variable, visible(query.where)))
        return replace(query, form=replace(query.form, projection=names))
    return query


def _seconds(back_ms: int) -> ast.Literal:
    whole, rest = divmod(back_ms, 1000)
    if not rest:
        return ast.Literal(str(whole), ast.XSD + "integer")
    return ast.Literal(f"{whole}.{rest:03}", ast.XSD + "decimal")


Formula = Callable[[ast.Expression, ast.Expression, int], ast.Expression]


def _difference(now: ast.Expression, before: ast.Expression, back_ms: int) -> ast.Expression:
    return ast.Binary("-", now, before)


def _growth(now: ast.Expression, before: ast.Expression, back_ms: int) -> ast.Expression:
    return ast.Binary("/", ast.Binary("-", now, before), before)


def _rate(now: ast.Expression, before: ast.Expression, back_ms: int) -> ast.Expression:
    return ast.Binary("/", ast.Binary("-", now, before), _seconds(back_ms))


_FORMULAS: Mapping[str, Formula] = {
    "difference": _difference,
    "growth": _growth,
    "rate": _rate,
    "before": lambda now, before, back_ms: before,
}
