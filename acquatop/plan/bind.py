"""Binding of plans to a catalog: from IRIs to the sources, remotes and files they stand for."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from acquatop.catalog.catalog import Catalog, Service
from acquatop.catalog.functions import function_problems, with_declared
from acquatop.catalog.graphs import StaticGraph
from acquatop.ingest.matchers import matcher_of
from acquatop.ingest.record_pattern import RecordPattern, unknown_predicate
from acquatop.plan.bind_parts import bound_parts, datatypes_at_close, parts_have_numbers
from acquatop.plan.bind_table import bound_table
from acquatop.plan.bound import (
    Bound,
    BoundCounted,
    BoundQuery,
    BoundRemote,
    BoundWindow,
    BoundWindowed,
)
from acquatop.plan.check_services import (
    check_joined,
    check_records,
    check_refresh,
    check_strategy,
)
from acquatop.plan.find_names import graph_of, service_of, window_of
from acquatop.plan.reading_order import circle
from rspql import ast
from rspql.ast import Iri
from rspql.compiler import compile_query
from rspql.diagnostics import Diagnostic, QueryError
from rspql.plan import AnyWindow, CountWindow, Plan, RemotePart, TopKPlan, WindowedPlan
from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry


def bind_query(
    text: str,
    catalog: Catalog,
    *,
    functions: FunctionRegistry = DEFAULT_FUNCTIONS,
    file: str = "<query>",
    name: str | None = None,
) -> Bound:
    """Compile a query and bind it.

    Raises :class:`~rspql.diagnostics.QueryError` for mistakes and for names that cannot be found.
    """
    functions = with_declared(functions, catalog.functions)
    plan = compile_query(
        text, prefixes=catalog.prefixes, functions=functions, records=catalog.records, file=file
    )
    problems = list(function_problems(plan, catalog.functions))
    if problems:
        raise QueryError(problems, text, file)
    return bind_plan(plan, catalog, text=text, file=file, name=name)


def bind_plan(
    plan: Plan, catalog: Catalog, *, text: str, file: str = "<query>", name: str | None = None
) -> Bound:
    """Bind a plan for the fastest evaluation that the catalog allows; errors quote ``text``.

    Raises :class:`~rspql.diagnostics.QueryError`.
    """
    windows = plan.windowed.windows if isinstance(plan, TopKPlan) else plan.windows
    own = [window.stream for window in windows if window.stream.value == plan.name]
    if own and plan.name not in catalog.streams:
        raise QueryError([circle(own[0])], text, file)
    bound = _bind(plan, catalog, text, file, name)
    return BoundCounted(bound.name, bound) if isinstance(windows[0], CountWindow) else bound


def _bind(
    plan: Plan, catalog: Catalog, text: str, file: str, name: str | None
) -> BoundQuery | BoundWindowed:
    match plan:
        case TopKPlan():
            bound = _bind_topk(plan, catalog, text, file, name)
            if isinstance(bound, BoundQuery):
                return bound
            for each in plan.otherwise:
                other = _bind_topk(each, catalog, text, file, name)
                if isinstance(other, BoundQuery):
                    return other
            windowed = plan.in_digits if _has_numbers(plan, catalog) else plan.windowed
            return replace(
                bind_windowed(windowed, catalog, text=text, file=file, name=name), reason=bound
            )
        case WindowedPlan():
            asks = plan.table is None  # else what it asks is checked then
            whole = bind_windowed(plan, catalog, text=text, file=file, name=name, asks=asks)
            return whole if plan.table is None else bound_table(whole, text, file)


def _has_numbers(plan: TopKPlan, catalog: Catalog) -> bool:
    """Return True if the stream's values in a plan's score and filters are numbers."""
    stream = catalog.streams.get(plan.window.stream.value)
    if plan.parts:
        return parts_have_numbers(plan, catalog)
    if stream is None:
        return False
    return matcher_of(plan, stream.mapping, arrivals=stream.arrivals).has_numbers


def bind_windowed(
    plan: WindowedPlan,
    catalog: Catalog,
    *,
    text: str,
    file: str = "<query>",
    name: str | None = None,
    asks: bool = True,
) -> BoundWindowed:
    """Bind a plan for evaluation window by window.

    Without ``asks``, its services need not be able to answer its patterns.

    Raises :class:`~rspql.diagnostics.QueryError` for names that cannot be found.
    """
    found: list[Diagnostic] = []
    windows = tuple(window_of(window, catalog, found) for window in plan.windows)
    remotes = tuple(_remote(part, catalog, found, asks=asks) for part in plan.evaluated.remotes)
    graphs = _graphs(plan, catalog, found)
    _check_predicates(plan, [window for window in windows if window], found)
    if found:
        raise QueryError(list(dict.fromkeys(found)), text, file)
    return BoundWindowed(
        name or plan.name or "query",
        plan,
        tuple(window for window in windows if window),
        tuple(remote for remote in remotes if remote),
        graphs,
    )


def _graphs(
    plan: WindowedPlan, catalog: Catalog, found: list[Diagnostic]
) -> tuple[StaticGraph, ...]:
    """Return the static graphs that a query names, as far as the catalog has them."""
    named = (*plan.query.default_graphs, *plan.query.named_graphs)
    graphs = [graph_of(iri, catalog, found) for iri in {iri.value: iri for iri in named}.values()]
    _check_names(plan.windows, named, found)
    return tuple(graph for graph in graphs if graph)


def _bind_topk(
    plan: TopKPlan, catalog: Catalog, text: str, file: str, name: str | None
) -> BoundQuery | Diagnostic:
    """Bind a plan for incremental evaluation, or return the reason why the catalog prevents it."""
    found: list[Diagnostic] = []
    parts = bound_parts(plan, catalog, found)
    window = window_of(plan.window, catalog, found)
    services = _services(plan, catalog, found)
    service = services[0] if services else None
    problems = len(found)
    graphs = _graphs(plan.windowed, catalog, found)
    if window is None or len(services) < _asked(plan) or len(found) > problems:
        raise QueryError(found, text, file)
    matcher = matcher_of(plan, window.stream.mapping, arrivals=window.stream.arrivals)
    if not plan.parts:
        matcher.check(found)
    _check_digits(plan, matcher, found)
    if plan.join:
        check_joined(plan, services, window.stream, found)
    elif plan.service and service:
        check_records(service, plan.service.group, plan.join_variables[0], found)
        check_refresh(plan, window.stream, service, found)
    if plan.gathered and window.stream.keys == "executors":
        message = 'the stream has keys = "executors", where groups\' solutions are not gathered'
        found.append(Diagnostic("unsupported", message, plan.gathered[0].span))
    if plan.service and not plan.parts:
        check_strategy(plan, window, service, found)
    mistakes = [each for each in found if each.code != "unsupported"]
    if mistakes:
        raise QueryError(mistakes, text, file)
    if found:
        return found[0]
    matchers = {each.matcher: each.plan.score for each in parts} or {matcher: plan.score}
    datatypes = {
        name: datatype
        for each, score in matchers.items()
        for name, datatype in each.score_datatypes(score).items()
    }
    if plan.at_close:
        datatypes |= datatypes_at_close(plan.at_close, datatypes)
    plan = replace(plan, score=replace(plan.score, datatypes=datatypes))
    return BoundQuery(
        name or plan.name or "query",
        plan,
        window.stream,
        service,
        window.windows,
        matcher,
        tuple(services) if plan.join else (),
        parts,
        tuple(each for each in graphs if plan.join and each.iri in plan.join.graphs),
    )


def _check_digits(plan: TopKPlan, matcher: RecordPattern, found: list[Diagnostic]) -> None:
    """Note numbers that a score on terms, or an engine that filters them, may not hold.

    The score's own arithmetic is in exact digits, or says that it is not; an engine's overflows.
    """
    if plan.join is None or not plan.on_terms:
        return
    kinds = {each for name in plan.join.inputs for each in matcher.kinds_of_digits(name)}
    message = ""
    if "float" in kinds:
        message = "numbers of xsd:float have digits that a score on terms would lose"
    elif kinds and _computes(plan.join.group):
        message = "a filter computes with decimals, which need all their digits"
    if message:
        found.append(Diagnostic("unsupported", message, plan.window.name.span))


def _computes(group: ast.Group) -> bool:
    """Return True if a group has arithmetic in it."""
    return any(
        isinstance(node, ast.Unary | ast.Binary) and node.operator in ("+", "-", "*", "/")
        for node in ast.walk(group)
    )


def _services(plan: TopKPlan, catalog: Catalog, found: list[Diagnostic]) -> list[Service]:
    """Return the services that a plan asks, as far as the catalog has them."""
    if plan.join is not None:
        several = [service_of(each.iri, catalog, found) for each in plan.join.services]
    else:
        several = [service_of(plan.service.iri, catalog, found)] if plan.service else []
    return [each for each in several if each is not None]


def _asked(plan: TopKPlan) -> int:
    """Return the number of service patterns that a plan asks."""
    return len(plan.join.services) if plan.join is not None else int(plan.service is not None)


def _remote(
    part: RemotePart, catalog: Catalog, found: list[Diagnostic], *, asks: bool
) -> BoundRemote | None:
    service = service_of(part.iri, catalog, found)
    if service is None:
        return None
    if asks:
        check_records(service, part.pattern.group, part.key, found)
    return BoundRemote(part, service)


def _check_names(
    windows: Iterable[AnyWindow], graphs: Iterable[Iri], found: list[Diagnostic]
) -> None:
    """Note graphs that have the name of a window."""
    names = {window.name.value for window in windows}
    for iri in graphs:
        if iri.value in names:
            message = f"<{iri.value}> is a window and cannot be a graph too"
            found.append(
                Diagnostic("duplicate-name", message, iri.span, "give the window another name")
            )


def _check_predicates(
    plan: WindowedPlan, windows: Iterable[BoundWindow], found: list[Diagnostic]
) -> None:
    """Note patterns within a window that no record of its stream can match."""
    mappings = {window.name: window.stream.mapping for window in windows}
    for node in ast.walk(plan.query):
        if (
            isinstance(node, ast.GraphPattern)
            and isinstance(node.graph, ast.Iri)
            and node.graph.value in mappings
        ):
            triples = (
                inner for inner in ast.walk(node.group) if isinstance(inner, ast.TriplePattern)
            )
            for predicate in (triple.predicate for triple in triples):
                if isinstance(predicate, ast.Iri):
                    found.extend(unknown_predicate(predicate, mappings[node.graph.value]))
