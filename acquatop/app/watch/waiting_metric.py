"""Metric of the things that queries wait for, computed at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily

from acquatop.engine.waiting.kinds import Waiting, WaitingKind


class WaitingMetric:
    """Collector of the number of running queries by the kind of thing that they wait for."""

    def __init__(self) -> None:
        self.waiting: Callable[[], Mapping[str, Waiting]] = dict

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield the metric. Called by the client library."""
        counts = Counter(each.kind for each in self.waiting().values())
        family = GaugeMetricFamily(
            "acquatop_waiting_queries", "Queries by the thing that they wait for.", labels=["kind"]
        )
        for kind in WaitingKind:
            family.add_metric([str(kind)], counts[kind])
        yield family
