"""Coverage of a simulation: the features that an answer has been judged with."""

from __future__ import annotations

from collections.abc import Iterator

from tests.support.simulation.remote import ServiceSpec
from tests.support.simulation.scenario import QuerySpec, Scenario, StreamSpec


def features_of(scenario: Scenario, query: QuerySpec) -> Iterator[str]:
    """Yield the features of a query, of its streams, its remote, and its surroundings."""
    yield f"query: {query.kind}{' over elements' if query.counts else ''}"
    yield f"output: {query.output}"
    if query.k and query.kind not in ("whole", "pairs"):
        yield f"order: {'descending' if query.descending else 'ascending'}"
    if query.offset:
        yield "OFFSET"
    if not query.from_start and not scenario.durable:
        yield "query comes late, may leave and come back"
    yield "input: recording" if scenario.recording else "input: live"
    yield "state: directory" if scenario.durable else "state: none"
    if scenario.clock_jumps:
        yield "clock: jumps"
    if scenario.losses:
        yield "evaluations are lost"
    for name in query.streams:
        yield from _of_stream(scenario.stream(name))
    service = scenario.service(query.service)
    if service is not None:
        yield from _of_service(service)
        mates = [each for each in scenario.queries if each.service == query.service]
        if len(mates) > 1:
            yield "remote: shared by queries"


def _of_stream(stream: StreamSpec) -> Iterator[str]:
    yield f"arrivals: {stream.arrivals}"
    if stream.is_minimal:
        yield "stream: default settings"
    if stream.lateness_ms:
        yield "stream: lateness"
    if stream.idle_ms is not None:
        yield "stream: idle"
    if stream.strategy:
        yield f"stream: {stream.strategy}"
    if not stream.is_orderly:
        yield "stream: late records"


def _of_service(service: ServiceSpec) -> Iterator[str]:
    yield "remote: default settings" if service.is_minimal else "remote: own settings"
    if service.has_feed:
        yield "remote: only pushes" if service.is_push else "remote: feed"
    if service.limits:
        yield "remote: limits over time"
    if service.capacity is not None:
        yield "remote: capacity"
    if any(service.bank):
        yield "remote: bank"
    yield "budget: strict" if service.strict else "budget: not strict"
