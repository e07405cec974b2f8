"""Check that services can be asked as a plan wants it."""

from __future__ import annotations

from collections.abc import Iterable

from acquatop.catalog.catalog import Service, Stream
from acquatop.catalog.remotes import SparqlSource
from acquatop.catalog.vocabulary import Strategy
from acquatop.plan.bound import BoundWindow
from acquatop.plan.remote_query import star_in
from acquatop.plan.strategy import HintError, Workload, choose
from acquatop.plugins import looks_at_panes
from acquatop.topk.shared.contract import TopKRequest
from replica.key_tuples import key_text
from rspql import ast
from rspql.diagnostics import Diagnostic
from rspql.plan import TopKPlan


def check_joined(
    plan: TopKPlan, services: Iterable[Service], stream: Stream, found: list[Diagnostic]
) -> None:
    """Note why services cannot be joined incrementally."""
    assert plan.join is not None
    for service, each in zip(services, plan.join.services, strict=True):
        check_records(service, each.pattern.group, key_text(each.keys), found)
    if plan.aggregate is not None and stream.keys == "executors":
        what = "static graphs" if plan.join.is_constant else "services"
        message = f'the stream has keys = "executors", where {what} cannot be joined'
        hint = 'set keys = "driver" for the stream'
        assert plan.service is not None
        at = plan.join.services[0].iri.span if plan.join.services else plan.service.iri.span
        found.append(Diagnostic("keys", message, at, hint))


def check_records(
    service: Service, group: ast.Group, key: str | None, found: list[Diagnostic]
) -> None:
    """Note the reason why a service of records, which has no SPARQL, cannot answer a pattern."""
    if isinstance(service.source, SparqlSource):
        return
    star = star_in(service.source.mapping, group, key)
    if isinstance(star, Diagnostic):
        found.append(star)


def check_refresh(
    plan: TopKPlan, stream: Stream, service: Service, found: list[Diagnostic]
) -> None:
    """Note that a service's policy needs data of the stream that only the executors have."""
    policy = service.refresh.policy
    if plan.aggregate is None or stream.keys != "executors" or plan.service is None:
        return
    policy_hint = "set an AT- policy without refill for the service"
    if plan.roll_up is not None:
        message = 'the stream has keys = "executors", where groups of a join cannot be had'
        hint = 'set keys = "driver" for the stream'
        found.append(Diagnostic("keys", message, plan.service.iri.span, hint))
    for is_asked, what, hint in (
        (service.refresh.refill, "refill = true", policy_hint),
        (looks_at_panes(policy), f'"{policy}"', policy_hint),
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


def check_strategy(
    plan: TopKPlan, window: BoundWindow, service: Service | None, found: list[Diagnostic]
) -> None:
    """Note that a stream's strategy cannot keep the candidates of a query with a remote."""
    is_constant = plan.join is not None and plan.join.is_constant
    if plan.aggregate is not None or plan.service is None or is_constant:
        return
    if window.stream.strategy is None:
        return
    against = _against(plan, window, window.stream.strategy, service)
    if against is not None:
        message = f'the stream has strategy = "{window.stream.strategy}", but {against}'
        hint = (
            "leave strategy out for the stream, "
            "or read it under another name, with a section of its own"
        )
        found.append(Diagnostic("strategy", message, plan.service.iri.span, hint))


def _against(
    plan: TopKPlan, window: BoundWindow, strategy: str, service: Service | None
) -> str | None:
    """Return what a strategy cannot do for a query with a remote; None if it can do all."""
    asked = TopKRequest(window.windows, plan.k + plan.offset)
    workload = Workload((asked,), changes=True)
    try:
        choose(workload, available=(strategy,), hint=strategy)
    except HintError as error:
        return f"a remote's values change: {error}"
    if strategy != Strategy.EACH and service is not None and service.refresh.refill:
        return "the service has refill = true, which pane-dominance alone can do"
    return None
