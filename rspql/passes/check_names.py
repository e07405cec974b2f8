"""Check names: absolute IRIs, bound variables, known functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rspql import ast
from rspql.built_ins import ARITIES, CHANGES
from rspql.diagnostics import Diagnostic, nearest
from rspql.iris import is_absolute
from rspql.scope import visible
from rspql.scoring import FunctionRegistry, to_sparql

CASTS = frozenset(
    ast.XSD + name for name in "boolean double float decimal integer dateTime string".split()
)
"""Constructor functions of SPARQL 1.1 [17.1]."""


def check_names(query: ast.Query, functions: FunctionRegistry, found: list[Diagnostic]) -> None:
    """Append to ``found`` a diagnostic for each name in a query that denotes nothing."""
    for node in ast.walk(query):
        if isinstance(node, ast.Iri) and not is_absolute(node.value):
            hint = "declare a BASE or write the whole IRI"
            found.append(Diagnostic("relative-iri", f"<{node.value}> is relative", node.span, hint))
        elif isinstance(node, ast.Call):
            found.extend(_function_problems(node, functions))
        elif isinstance(node, ast.Query):
            found.extend(_unbound(node))
            found.extend(_unbound_in_filters(node))
        elif isinstance(node, ast.ServicePattern):
            found.extend(_unknown_there(node, functions))


def _function_problems(call: ast.Call, functions: FunctionRegistry) -> Iterator[Diagnostic]:
    if isinstance(call.function, ast.Iri):
        value = call.function.value
        known = value in (*CASTS, *CHANGES) or functions.find(call.function) is not None
        shown = f"<{call.function.value}>"
    else:
        known = call.function in ARITIES or functions.find(call.function) is not None
        shown = call.function
    if not known:
        name = call.function.value if isinstance(call.function, ast.Iri) else call.function
        known_names = (
            [*functions, *ARITIES] if isinstance(call.function, str) else [*functions, *CHANGES]
        )
        near = nearest(name if isinstance(call.function, ast.Iri) else name.lower(), known_names)
        hint = (
            f"did you mean {near}?"
            if near
            else "docs/language.md lists the functions; others are registered in Python"
        )
        yield Diagnostic("unknown-function", f"there is no function {shown}", call.span, hint)


def _unknown_there(
    service: ast.ServicePattern, functions: FunctionRegistry
) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each call that cannot be sent to a remote.

    The function is known here, but the call cannot be written in plain SPARQL.
    """
    for node in ast.walk(service.group):
        if isinstance(node, ast.Call) and functions.find(node.function) is not None:
            plain = to_sparql(node, functions)
            if plain is None or calls_own(plain):
                shown = (
                    f"<{node.function.value}>"
                    if isinstance(node.function, ast.Iri)
                    else node.function
                )
                hint = "use it outside the SERVICE"
                yield Diagnostic(
                    "unsupported", f"the remote does not know the function {shown}", node.span, hint
                )


def calls_own(part: ast.Node) -> bool:
    """Return True if a part of a query calls an IRI that is not one of SPARQL's casts."""
    names = (node.function for node in ast.walk(part) if isinstance(node, ast.Call))
    return any(isinstance(name, ast.Iri) and name.value not in CASTS for name in names)


def _unbound(query: ast.Query) -> Iterator[Diagnostic]:
    bound = visible(query.where) if query.where else {}
    if query.values:
        bound |= {variable.name: None for variable in query.values.variables}
    if isinstance(query.form, ast.Select):
        for item in query.form.projection:
            if (
                isinstance(item, ast.Variable)
                and item.name not in bound
                and not _is_key(item, query)
            ):
                message = f"?{item.name} is selected but nothing binds it"
                yield Diagnostic(
                    "unbound", message, item.span, _near_variable(item, bound), severity="warning"
                )
        bound = bound | {item.variable.name: None for item in _assignments(query.form.projection)}
    bound = bound | {item.variable.name: None for item in _assignments(query.group_by)}
    for condition in query.order:
        known = bound | _inner(condition)
        for variable in ast.walk(condition.expression):
            if isinstance(variable, ast.Variable) and variable.name not in known:
                message = f"ORDER BY needs ?{variable.name}, but nothing binds it"
                yield Diagnostic("unbound", message, variable.span, _near_variable(variable, bound))


def _unbound_in_filters(query: ast.Query) -> Iterator[Diagnostic]:
    """Yield a warning for each variable of a filter that nothing in the pattern binds.

    A binding anywhere in the pattern counts.
    """
    nodes = list(ast.walk(query.where)) if query.where else []
    filters = [node for node in nodes if isinstance(node, ast.Filter)]
    held = {id(node) for each in filters if not _has_pattern(each) for node in ast.walk(each)}
    bound = {
        node.name: None for node in nodes if isinstance(node, ast.Variable) and id(node) not in held
    }
    computed = _assignments(query.form.projection) if isinstance(query.form, ast.Select) else []
    late = {item.variable.name for item in computed}
    unbound = {
        node.name: node for node in reversed(list(_variables(filters))) if node.name not in bound
    }
    for name, variable in reversed(unbound.items()):
        message = f"the FILTER needs ?{name}, but nothing in the pattern binds it"
        hint = (
            "SELECT computes it only afterwards: use BIND"
            if name in late
            else _near_variable(variable, bound)
        )
        yield Diagnostic("unbound", message, variable.span, hint, severity="warning")


def _variables(nodes: Iterable[ast.Node]) -> Iterator[ast.Variable]:
    return (node for each in nodes for node in ast.walk(each) if isinstance(node, ast.Variable))


def _has_pattern(node: ast.Node) -> bool:
    return any(isinstance(each, ast.Exists) for each in ast.walk(node))


def _is_key(variable: ast.Variable, query: ast.Query) -> bool:
    return any(item.variable == variable for item in _assignments(query.group_by))


def _assignments(items: Iterable[ast.Node]) -> list[ast.Assignment]:
    return [item for item in items if isinstance(item, ast.Assignment)]


def _inner(condition: ast.OrderCondition) -> dict[str, None]:
    """Return the variables in EXISTS patterns, which bind them themselves."""
    groups = (node.group for node in ast.walk(condition) if isinstance(node, ast.Exists))
    return {name: None for group in groups for name in visible(group)}


def _near_variable(variable: ast.Variable, bound: Iterable[str]) -> str | None:
    near = nearest(variable.name, bound)
    return f"did you mean ?{near}?" if near else None
