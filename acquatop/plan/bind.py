"""Binding of plans to a catalog: from IRIs to the sources, remotes and files they stand for."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import ClassVar

from acquatop.catalog.catalog import Catalog, Service, Stream
from acquatop.catalog.functions import function_problems, with_declared
from acquatop.catalog.graphs import StaticGraph
from acquatop.catalog.remotes import SparqlSource
from acquatop.catalog.vocabulary import Strategy
from acquatop.ingest.match import Matcher, unknown_predicate
from acquatop.ingest.matchers import matcher_of
from acquatop.plan.reading_order import circle
from acquatop.plan.remote_query import star_of
from acquatop.plan.strategy import Choice, HintError, Workload, choose
from acquatop.topk.shared.contract import TopKRequest
from acquatop.windows import Windows, over_positions
from rspql import ast
from rspql.ast import Iri
from rspql.compiler import compile_query
from rspql.diagnostics import Diagnostic, QueryError, nearest
from rspql.plan import AnyWindow, CountWindow, Plan, RemotePart, TopKPlan, WindowedPlan
from rspql.scoring import DEFAULT_FUNCTIONS, FunctionRegistry

_RETAINED = Choice(
    Strategy.RETAINED, "equal scores or equal rows may need more than the best k", {}
)

MANY_OPEN = 1_000
"""Number of windows open at once above which a query that counts elements gets a warning."""


MOST_KEYS = 1_000_000
"""Number of keys up to which the driver holds their aggregates, some 400 MB, if it may choose."""


@dataclass(frozen=True)
class BoundQuery:
    """Top-k plan with everything it names found; ``service`` is None if it asks no remote.

    If the plan joins several, these are the ``services`` of its join in their order, and the
    ``service`` is the first, with whose N candidates are held.
    """

    name: str
    plan: TopKPlan
    stream: Stream
    service: Service | None
    windows: Windows
    matcher: Matcher
    services: tuple[Service, ...] = ()

    @property
    def arrivals(self) -> str:
        """Effect of a newer arrival on an older one: that of the stream's catalog.

        Distinct values are counted as if all arrivals counted: a value that comes again is one.
        """
        aggregate = self.plan.aggregate
        is_set = aggregate is not None and aggregate.is_distinct
        return "all" if is_set and self.stream.arrivals == "distinct" else self.stream.arrivals

    @property
    def choice(self) -> Choice:
        """Structure that keeps the candidates of a query without aggregates, and the reason.

        The catalog says whether the windows' content is kept because a remote's values change.
        Without a remote nothing but a newer arrival changes a score, and uncertain answers would
        save nothing.
        """
        exact = self.service is None or self.service.refresh.refill
        workload = Workload(
            (TopKRequest(self.windows, self.plan.k + self.plan.offset),),
            changes=self.service is not None,
            recurring=self.stream.arrivals == "latest" or self.matcher.retracts,
            may_retain=exact,
            may_approximate=not exact,
        )
        return choose(workload, available=(Strategy.EACH, Strategy.REFILLED))

    @property
    def refills(self) -> bool:
        """True if the windows' content is kept to refill a list from."""
        return self.choice.strategy is Strategy.REFILLED and not self.retains

    @property
    def retains(self) -> bool:
        """True if all solutions are ranked at every close: the best k alone may not suffice."""
        return self.plan.finish is not None and self.plan.aggregate is None

    @property
    def looks_at_panes(self) -> bool:
        """True if a refresh policy considers all that a window joins with."""
        services = self.services or ((self.service,) if self.service else ())
        return any(each.refresh.policy.startswith("WSJ-") for each in services)

    @property
    def keeps_each_solution(self) -> bool:
        """True if the driver needs each solution, not only the best or the sums of each pane."""
        if self.has_fixed_scores:
            return False
        is_reduced = self.arrivals == "distinct" and not self.retains
        return not is_reduced or self.refills or self.looks_at_panes

    @property
    def has_fixed_scores(self) -> bool:
        """True if a solution always has the same score: it is the same whenever it comes again."""
        return (
            self.plan.aggregate is None
            and self.service is None
            and self.stream.arrivals != "latest"
            and not self.matcher.combines
            and not self.retains
        )

    @property
    def keys_may_move(self) -> bool:
        """True if the aggregates of the query's keys are kept wherever there is room for them.

        A replica of limited capacity needs all keys in the driver, to tell which it has to keep.
        """
        service = self.service
        return (
            self.plan.aggregate is not None
            and self.stream.keys == "auto"
            and self.arrivals == "distinct"
            and self.plan.finish is None
            and (
                service is None
                or (
                    self.plan.join is None
                    and service.capacity is None
                    and service.solutions == "one"
                    and not service.refresh.refill
                    and not service.refresh.policy.startswith("WSJ-")
                )
            )
        )

    @property
    def keys_in_executors(self) -> bool:
        """True if the aggregates of the query's keys are kept where the executors read them."""
        return (
            self.plan.aggregate is not None
            and self.stream.keys == "executors"
            and self.arrivals == "distinct"
            and self.plan.finish is None
        )

    @property
    def structure(self) -> Choice | None:
        """Structure that keeps the candidates; None with aggregates, which keep all keys."""
        if self.plan.aggregate is not None:
            return None
        return self.choice if self.plan.finish is None else _RETAINED

    def structure_over_positions(self, hint: str | None) -> Choice | None:
        """Return the structure for windows that count elements; None with aggregates.

        A ``hint`` replaces the one that the catalog asks for.
        """
        is_distinct = self.stream.arrivals == "distinct" and not self.matcher.may_be_several
        if self.plan.aggregate is not None or self.retains or not is_distinct:
            return self.structure
        workload = Workload(
            (TopKRequest(self.windows, self.plan.k + self.plan.offset),), counts=True
        )
        available = (Strategy.EACH, Strategy.BLOCKS)
        asked_for = self.stream.strategy if self.stream.strategy in available else None
        return choose(workload, available=available, hint=hint or asked_for)

    @property
    def can_share(self) -> bool:
        """True if queries with other windows may share its structure: its scores never change."""
        return (
            self.plan.aggregate is None
            and self.service is None
            and self.stream.arrivals == "distinct"
            and not self.retains
        )

    @property
    def counted_windows(self) -> Windows:
        """Windows over positions, if the query counts elements."""
        return self.windows

    @property
    def late_bound(self) -> float | None:
        """Bound of the score of a result that an answer may lack because of a late element."""
        return math.inf

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings: none."""
        return ()

    @property
    def reason(self) -> Diagnostic | None:
        """Reason for another evaluation than the plan allows: none."""
        return None

    def warnings_of_open_windows(self) -> tuple[Diagnostic, ...]:
        """Return a warning if very many windows are open at once."""
        open_at_once = -(-self.windows.width_ms // self.windows.slide_ms)
        if open_at_once <= MANY_OPEN:
            return ()
        message = (
            f"up to {open_at_once} windows are open at once, "
            "and each of them costs something with every STEP"
        )
        hint = "take a larger STEP"
        if self.plan.aggregate is None:
            hint += (
                ', or set arrivals = "distinct" for the stream '
                "if none of its records replaces another"
            )
        span = self.plan.window.name.span
        return (Diagnostic("many-windows", message, span, hint, severity="warning"),)

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Stream that the query reads."""
        return (self.stream,)


@dataclass(frozen=True)
class BoundWindow:
    """Window, the stream that fills it, and the times at which it opens and closes."""

    name: str
    stream: Stream
    windows: Windows


@dataclass(frozen=True)
class BoundRemote:
    """Part of a query that a remote answers, and the remote."""

    part: RemotePart
    service: Service


@dataclass(frozen=True)
class BoundWindowed:
    """Plan of a query that is evaluated window by window, with everything it names found.

    ``reason`` says why this catalog prevents the incremental evaluation of a plan that allows it.
    """

    name: str
    plan: WindowedPlan
    windows: tuple[BoundWindow, ...]
    remotes: tuple[BoundRemote, ...]
    graphs: tuple[StaticGraph, ...]
    reason: Diagnostic | None = None

    structure: ClassVar[Choice | None] = None
    can_share: ClassVar[bool] = False
    late_bound: ClassVar[float | None] = None
    warnings: ClassVar[tuple[Diagnostic, ...]] = ()

    def structure_over_positions(self, hint: str | None) -> Choice | None:
        """Return None: there are no candidates."""
        return None

    @property
    def counted_windows(self) -> Windows:
        """Windows over positions, if the query counts elements."""
        return self.windows[0].windows

    def warnings_of_open_windows(self) -> tuple[Diagnostic, ...]:
        """Return no warning: only the window that closes costs something."""
        return ()

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Streams that the query reads, each once."""
        return tuple({window.stream.iri: window.stream for window in self.windows}.values())


@dataclass(frozen=True)
class BoundCounted:
    """Query whose windows count its stream's elements; ``query`` is the same over their positions.

    A ``hint`` names the structure that keeps candidates. It replaces the cheapest one, or the one
    that the catalog asks for.
    """

    name: str
    query: BoundQuery | BoundWindowed
    hint: str | None = None

    @property
    def plan(self) -> Plan:
        """Plan of the query."""
        return self.query.plan

    @property
    def stream(self) -> Stream:
        """Stream that the query reads."""
        (stream,) = self.query.streams
        return stream

    @property
    def streams(self) -> tuple[Stream, ...]:
        """Stream that the query reads."""
        return (self.stream,)

    @property
    def windows(self) -> Windows:
        """Windows over the elements' positions."""
        return self.query.counted_windows

    can_share: ClassVar[bool] = False

    @property
    def reason(self) -> Diagnostic | None:
        """Reason for another evaluation than the plan allows, if there is one."""
        return self.query.reason

    @property
    def structure(self) -> Choice | None:
        """Structure that keeps the candidates, and the reason.

        None for whole windows or aggregates.
        """
        return self.query.structure_over_positions(self.hint)

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """Warnings about a query that is legal but likely to cost more than expected."""
        is_cheap = self.structure is not None and self.structure.strategy is Strategy.BLOCKS
        return () if is_cheap else self.query.warnings_of_open_windows()


Bound = BoundQuery | BoundWindowed | BoundCounted


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
            windowed = plan.in_digits if _has_numbers(plan, catalog) else plan.windowed
            return replace(
                bind_windowed(windowed, catalog, text=text, file=file, name=name), reason=bound
            )
        case WindowedPlan():
            return bind_windowed(plan, catalog, text=text, file=file, name=name)


def _has_numbers(plan: TopKPlan, catalog: Catalog) -> bool:
    """Return True if the stream's values in a plan's score and filters are numbers."""
    stream = catalog.streams.get(plan.window.stream.value)
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
) -> BoundWindowed:
    """Bind a plan for evaluation window by window.

    Raises :class:`~rspql.diagnostics.QueryError` for names that cannot be found.
    """
    found: list[Diagnostic] = []
    windows = tuple(_window(window, catalog, found) for window in plan.windows)
    remotes = tuple(_remote(part, catalog, found) for part in plan.evaluated.remotes)
    named = (*plan.query.default_graphs, *plan.query.named_graphs)
    graphs = tuple(
        _graph(iri, catalog, found) for iri in {iri.value: iri for iri in named}.values()
    )
    _check_names(plan.windows, named, found)
    _check_predicates(plan, [window for window in windows if window], found)
    if found:
        raise QueryError(list(dict.fromkeys(found)), text, file)
    return BoundWindowed(
        name or plan.name or "query",
        plan,
        tuple(window for window in windows if window),
        tuple(remote for remote in remotes if remote),
        tuple(graph for graph in graphs if graph),
    )


def _bind_topk(
    plan: TopKPlan, catalog: Catalog, text: str, file: str, name: str | None
) -> BoundQuery | Diagnostic:
    """Bind a plan for incremental evaluation, or return the reason why the catalog prevents it."""
    found: list[Diagnostic] = []
    window = _window(plan.window, catalog, found)
    services = _services(plan, catalog, found)
    service = services[0] if services else None
    if window is None or len(services) < _asked(plan):
        raise QueryError(found, text, file)
    matcher = matcher_of(plan, window.stream.mapping, arrivals=window.stream.arrivals)
    matcher.check(found)
    if plan.join:
        _check_joined(plan, services, window.stream, found)
    elif plan.service and service:
        _check_records(service, plan.service.group, plan.join_variables[0], found)
        _check_refresh(plan, window.stream, service, found)
    if plan.service:
        _check_strategy(plan, window, found)
    mistakes = [each for each in found if each.code != "unsupported"]
    if mistakes:
        raise QueryError(mistakes, text, file)
    if found:
        return found[0]
    typed = replace(plan.score, datatypes=matcher.score_datatypes(plan.score))
    plan = replace(plan, score=typed)
    return BoundQuery(
        name or plan.name or "query",
        plan,
        window.stream,
        service,
        window.windows,
        matcher,
        tuple(services) if plan.join else (),
    )


def _services(plan: TopKPlan, catalog: Catalog, found: list[Diagnostic]) -> list[Service]:
    """Return the services that a plan asks, as far as the catalog has them."""
    if plan.join is not None:
        several = [_service(each.iri, catalog, found) for each in plan.join.services]
    else:
        several = [_service(plan.service.iri, catalog, found)] if plan.service else []
    return [each for each in several if each is not None]


def _asked(plan: TopKPlan) -> int:
    """Return the number of service patterns that a plan asks."""
    return len(plan.join.services) if plan.join is not None else int(plan.service is not None)


def _check_joined(
    plan: TopKPlan, services: Iterable[Service], stream: Stream, found: list[Diagnostic]
) -> None:
    """Note why services cannot be joined incrementally."""
    assert plan.join is not None
    for service, each in zip(services, plan.join.services, strict=True):
        _check_records(service, each.pattern.group, each.key, found)
        if service.capacity is not None:
            message = "a replica with a capacity may have dropped what is joined here"
            found.append(Diagnostic("unsupported", message, each.iri.span))
        if plan.aggregate is not None and stream.keys == "executors":
            message = 'the stream has keys = "executors", where services cannot be joined'
            hint = 'set keys = "driver" for the stream'
            found.append(Diagnostic("keys", message, each.iri.span, hint))


def _window(window: AnyWindow, catalog: Catalog, found: list[Diagnostic]) -> BoundWindow | None:
    stream = catalog.streams.get(window.stream.value)
    if stream is None:
        found.append(_no_stream(window.stream, catalog))
        return None
    if isinstance(window, CountWindow):
        _check_count(window, stream, found)
        return BoundWindow(window.name.value, stream, over_positions(window.count, window.step))
    start_ms = stream.start_ms if window.start_ms is None else window.start_ms
    return BoundWindow(
        window.name.value, stream, Windows(window.width_ms, window.slide_ms, start_ms)
    )


def _check_count(window: CountWindow, stream: Stream, found: list[Diagnostic]) -> None:
    """Note that a window counts triples but a record of its stream may be several."""
    properties = len(stream.mapping.properties)
    if window.triples and properties > 1:
        message = (
            f"a record of the stream may be up to {properties} triples, and windows count records"
        )
        hint = f"write [ELEMENTS {window.count} STEP {window.step}] for as many records"
        found.append(Diagnostic("count-of-triples", message, window.name.span, hint))


def _remote(part: RemotePart, catalog: Catalog, found: list[Diagnostic]) -> BoundRemote | None:
    service = _service(part.iri, catalog, found)
    if service is None:
        return None
    _check_records(service, part.pattern.group, part.key, found)
    return BoundRemote(part, service)


def _check_records(
    service: Service, group: ast.Group, key: str | None, found: list[Diagnostic]
) -> None:
    """Note the reason why a service of records, which has no SPARQL, cannot answer a pattern."""
    if isinstance(service.source, SparqlSource):
        return
    star = star_of(group, key, service.source.mapping.properties.keys())
    if isinstance(star, Diagnostic):
        found.append(star)


def _check_refresh(
    plan: TopKPlan, stream: Stream, service: Service, found: list[Diagnostic]
) -> None:
    """Note that a service's policy needs data of the stream that only the executors have."""
    policy = service.refresh.policy
    if plan.aggregate is None or stream.keys != "executors" or plan.service is None:
        return
    policy_hint = "set an AT- policy without refill for the service"
    for is_asked, what, hint in (
        (service.refresh.refill, "refill = true", policy_hint),
        (policy.startswith("WSJ-"), f'"{policy}"', policy_hint),
        (
            service.solutions == "many",
            'solutions = "many"',
            'set solutions = "one" for the service if each key has one',
        ),
    ):
        if is_asked:
            message = (
                f'the stream has keys = "executors", where the service\'s {what} cannot be had'
            )
            hint += ', or keys = "driver" for the stream'
            found.append(Diagnostic("keys", message, plan.service.iri.span, hint))


def _check_strategy(plan: TopKPlan, window: BoundWindow, found: list[Diagnostic]) -> None:
    """Note that a stream's strategy cannot keep the candidates of a query with a remote."""
    if plan.aggregate is not None or plan.service is None or window.stream.strategy is None:
        return
    asked = TopKRequest(window.windows, plan.k + plan.offset)
    try:
        choose(Workload((asked,), changes=True), hint=window.stream.strategy)
    except HintError as error:
        message = (
            f'the stream has strategy = "{window.stream.strategy}", '
            f"but a remote's values change: {error}"
        )
        hint = (
            "leave strategy out for the stream, "
            "or read it under another name, with a section of its own"
        )
        found.append(Diagnostic("strategy", message, plan.service.iri.span, hint))


def _service(iri: Iri, catalog: Catalog, found: list[Diagnostic]) -> Service | None:
    service = catalog.services.get(iri.value)
    if service is None:
        found.append(_unknown("service", iri, catalog.services))
    return service


def _graph(iri: Iri, catalog: Catalog, found: list[Diagnostic]) -> StaticGraph | None:
    graph = catalog.graphs.get(iri.value)
    if graph is None:
        found.append(_unknown("graph", iri, catalog.graphs))
    return graph


def _check_names(
    windows: Iterable[AnyWindow], graphs: Iterable[Iri], found: list[Diagnostic]
) -> None:
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


def _no_stream(iri: Iri, catalog: Catalog) -> Diagnostic:
    reason = catalog.unreadable.get(iri.value)
    if reason is None:
        found = _unknown("stream", iri, catalog.streams)
        return replace(found, hint=f"{found.hint} (a query that makes it is registered first)")
    message = f"the query <{iri.value}> makes no stream: {reason}"
    return Diagnostic("unknown-stream", message, iri.span, "let it be a SELECT or a CONSTRUCT")


def _unknown(kind: str, iri: Iri, known: Iterable[str]) -> Diagnostic:
    near = nearest(iri.value, known)
    listed = ", ".join(f"<{each}>" for each in known) or "none"
    hint = f"did you mean <{near}>?" if near else f"the catalog has {listed}"
    return Diagnostic(f"unknown-{kind}", f"the catalog has no {kind} <{iri.value}>", iri.span, hint)
