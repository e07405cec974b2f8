"""Bind a plan to a catalog: from IRIs to the sources and remotes they stand for."""

from __future__ import annotations

from dataclasses import dataclass

from acquatop.catalog import Catalog, Service, Stream
from acquatop.operators.match import Matcher
from acquatop.windows import Windows
from rspql.ast import Iri
from rspql.compiler import compile_query
from rspql.diagnostics import Diagnostic, QueryError, nearest
from rspql.plan import TopKPlan


@dataclass(frozen=True)
class BoundQuery:
    """A plan with everything it names found."""

    name: str
    plan: TopKPlan
    stream: Stream
    service: Service
    windows: Windows
    matcher: Matcher


def bind_query(text: str, catalog: Catalog, *, file: str = "<query>", name: str | None = None) -> BoundQuery:
    """Compile a query and bind it; :class:`~rspql.diagnostics.QueryError` says what cannot be found."""
    plan = compile_query(text, prefixes=catalog.prefixes, file=file)
    found: list[Diagnostic] = []
    stream = catalog.streams.get(plan.window.stream.value)
    service = catalog.services.get(plan.service.iri.value)
    if stream is None:
        found.append(_unknown("stream", plan.window.stream, list(catalog.streams)))
    if service is None:
        found.append(_unknown("service", plan.service.iri, list(catalog.services)))
    matcher = stream and Matcher(plan, stream.mapping, latest_only=stream.arrivals == "latest")
    if matcher:
        matcher.check(found)
    if found or not (stream and service and matcher):
        raise QueryError(found, text, file)
    windows = Windows(plan.window.width_ms, plan.window.slide_ms, stream.start_ms)
    return BoundQuery(name or plan.name or "query", plan, stream, service, windows, matcher)


def _unknown(kind: str, iri: Iri, known: list[str]) -> Diagnostic:
    near = nearest(iri.value, known)
    listed = ", ".join(f"<{each}>" for each in known) or "none"
    hint = f"did you mean <{near}>?" if near else f"the catalog has {listed}"
    return Diagnostic(f"unknown-{kind}", f"the catalog has no {kind} <{iri.value}>", iri.span, hint)
