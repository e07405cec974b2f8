"""Entries of a catalog that a query uses."""

from __future__ import annotations

from collections.abc import Iterator

from acquatop.plan.bound import Bound, BoundCounted, BoundWindowed


def used_entries(bound: Bound) -> Iterator[str]:
    """Yield the IRIs of the streams, services and graphs that a query uses."""
    for stream in bound.streams:
        yield stream.iri
    query = bound.query if isinstance(bound, BoundCounted) else bound
    for graph in query.graphs:
        yield graph.iri
    if isinstance(query, BoundWindowed):
        for remote in query.remotes:
            yield remote.service.iri
        return
    for service in (*query.services, *([query.service] if query.service else [])):
        yield service.iri
