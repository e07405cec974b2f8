"""Look up what a query names in a catalog: streams, services and graphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from acquatop.catalog.catalog import Catalog, Service, Stream
from acquatop.catalog.graphs import StaticGraph
from acquatop.plan.bound import BoundWindow
from acquatop.plan.clock_stream import clock_stream
from acquatop.windows import Windows, over_positions
from rspql.ast import Iri
from rspql.diagnostics import Diagnostic, nearest
from rspql.plan import AnyWindow, CountWindow


def window_of(window: AnyWindow, catalog: Catalog, found: list[Diagnostic]) -> BoundWindow | None:
    """Return a window; None, and a diagnostic, if the catalog lacks its stream."""
    stream = catalog.streams.get(window.stream.value) or clock_stream(window.stream.value)
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


def service_of(iri: Iri, catalog: Catalog, found: list[Diagnostic]) -> Service | None:
    """Return a service; None, and a diagnostic, if the catalog has none of that name."""
    service = catalog.services.get(iri.value)
    if service is None:
        found.append(_unknown("service", iri, catalog.services))
    return service


def graph_of(iri: Iri, catalog: Catalog, found: list[Diagnostic]) -> StaticGraph | None:
    """Return a static graph; None, and a diagnostic, if the catalog has none of that name."""
    graph = catalog.graphs.get(iri.value)
    if graph is None:
        found.append(_unknown("graph", iri, catalog.graphs))
    return graph


def _check_count(window: CountWindow, stream: Stream, found: list[Diagnostic]) -> None:
    """Note that a window counts triples but a record of its stream may be several."""
    properties = len(stream.mapping.properties)
    if window.triples and properties > 1:
        message = (
            f"a record of the stream may be up to {properties} triples, and windows count records"
        )
        hint = f"write [ELEMENTS {window.count} STEP {window.step}] for as many records"
        found.append(Diagnostic("count-of-triples", message, window.name.span, hint))


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
