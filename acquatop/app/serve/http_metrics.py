"""Metrics of the HTTP service, in the registry of the engine's metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Meters:
    """Metrics of requests and of readers.

    The label ``route`` is the name of a handler, so that unknown addresses add no metrics.
    """

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.requests = Counter(
            "acquatop_http_requests",
            "Requests answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self.duration = Histogram(
            "acquatop_http_request_duration_seconds",
            "From a request to its answer; streams of events are not counted.",
            ["route"],
            registry=registry,
            buckets=_SECONDS,
        )
        self.readers = Gauge(
            "acquatop_stream_readers", "Readers of streams of events.", registry=registry
        )
        self.missed = Counter(
            "acquatop_stream_missed_events",
            "Events that readers were too slow for.",
            registry=registry,
        )
        self.delay = Histogram(
            "acquatop_stream_delay_seconds",
            "From an answer to the moment at which it is handed to the network, for each reader.",
            registry=registry,
            buckets=_SECONDS,
        )
