"""Prometheus metrics of the engine's work, in a registry of their own.

Names and labels follow Prometheus' conventions: seconds and bytes, ``_total`` for counters. Metrics
of a query have the label ``query``, and are removed with the query. Metrics of a stream have the
label ``stream``. docs/watch.md lists them all.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info, ProcessCollector
from prometheus_client.metrics import MetricWrapperBase

from acquatop import __version__
from acquatop.answer.unanswered import Unanswered
from acquatop.app.watch.bounded_labels import BoundedLabels
from acquatop.app.watch.waiting_metric import WaitingMetric
from acquatop.engine.observer import AnswerSeen, BatchSeen, Kept, QueryState, StateSeen
from acquatop.engine.waiting.kinds import Waiting
from replica.clocks import Clock

_Metric = TypeVar("_Metric", bound=MetricWrapperBase)

REASONS = 20
"""The number of distinct reasons per stream or query; all others are counted as ``other``."""

_DURATIONS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
)
_WRITTEN = (Kept.JOURNAL, Kept.SNAPSHOT)


class Metrics:
    """Observer that keeps metrics in ``registry`` (for :mod:`acquatop.app.watch.endpoint`).

    A batch or an answer costs some ten additions. Memory grows with the streams and the queries.
    Instances are independent of each other. ``wall`` is the time of day.
    """

    def __init__(self, *, wall: Clock = time.time, process: bool = True) -> None:
        self.registry = CollectorRegistry()
        self._wall = wall
        self._lock = threading.Lock()
        self._bad_reasons, self._rejected_reasons, self._kinds = (
            BoundedLabels(REASONS) for _ in range(3)
        )
        self._running: set[str] = set()
        self._watermarks: dict[str, float] = {}
        self._of_queries: list[MetricWrapperBase] = []
        if process:
            ProcessCollector(registry=self.registry)
        Info("acquatop", "The engine.", registry=self.registry).info({"version": __version__})
        self._make_stream_metrics()
        self._make_state_metrics()
        self._make_answer_metrics()
        self._make_remote_metrics()
        self._make_query_metrics()

    def _make_stream_metrics(self) -> None:
        stream = ["stream"]
        self._events = self._counter("events", "Events that were read.", stream)
        self._late = self._counter(
            "late_events", "Events that came too late for every window.", stream
        )
        self._repeated_messages = self._counter(
            "repeated_messages", "Messages dropped because they had come already.", stream
        )
        self._bad = self._counter(
            "bad_events", "Records that could not be used.", ["stream", "reason"]
        )
        self._sent_rows = self._counter(
            "sent_rows", "Rows that executors passed on to the driver.", stream
        )
        self._sent_bytes = self._counter("sent_bytes", "Bytes of these rows, unpacked.", stream)
        self._partitions = self._counter("partitions", "Partitions read.", stream)
        self._batch = self._histogram("batch_duration_seconds", "All of a batch.", stream)
        self._phase = self._histogram(
            "batch_phase_duration_seconds", "Parts of a batch.", ["stream", "phase"]
        )
        self._watermark = self._gauge(
            "watermark_timestamp_seconds", "Event time up to which windows close.", stream
        )
        self._lag = self._gauge(
            "watermark_lag_seconds", "Time of day less the watermark, when asked.", stream
        )
        self._standstill = self._gauge(
            "watermark_standstill_seconds",
            "How long records have come that do not move the watermark.",
            stream,
        )
        self._backlog = self._gauge(
            "backlog_bytes", "What the source holds that has not been read.", stream
        )
        self._read = self._gauge(
            "read_ratio", "How much of what the source holds has been read, 0 to 1.", stream
        )

    def _make_state_metrics(self) -> None:
        kinds = ["stream", "kind"]
        self._kept = self._counter("state_events", "What happened to the state directory.", kinds)
        self._kept_bytes = self._counter(
            "state_written_bytes", "Bytes written to the state directory.", kinds
        )
        self._kept_time = self._histogram(
            "state_write_duration_seconds", "Writing to the state directory.", kinds
        )

    def _make_answer_metrics(self) -> None:
        query = ["query"]
        self._answers = self._counter("answers", "Answers given.", ["query", "status"])
        self._repeated = self._counter(
            "repeated_answers", "Answers given out again after a restart.", query
        )
        self._unanswered = self._counter(
            "unanswered_windows", "Windows without an answer.", ["query", "reason"]
        )
        self._rows = self._counter("answer_rows", "Rows of answers.", query)
        self._latency = self._histogram(
            "answer_latency_seconds", "From knowing of a close to the answer.", query
        )
        self._candidates = self._gauge(
            "candidates", "Candidates held for the windows that are open.", query
        )
        self._panes = self._gauge(
            "panes_waiting", "Panes that wait for their window to close.", query
        )
        self._precision = self._gauge(
            "expected_precision", "Expected precision of the last answer.", query
        )
        self._ndcg = self._gauge("expected_ndcg", "Expected nDCG of the last answer.", query)
        self._skipped = self._counter(
            "skipped_windows", "Empty windows that were not answered.", query
        )

    def _make_remote_metrics(self) -> None:
        query = ["query"]
        self._requests = self._counter("refresh_requests", "Requests sent to remotes.", query)
        self._items = self._counter("refresh_items", "Items asked of remotes.", query)
        self._failures = self._counter(
            "refresh_failed_requests", "Requests to remotes that failed.", query
        )
        self._waits = self._counter(
            "refresh_wait_seconds", "Time spent waiting for remotes.", query
        )
        self._allowed_items = self._counter(
            "refresh_allowed_items", "Items that the budget allowed.", query
        )
        self._allowed_requests = self._counter(
            "refresh_allowed_requests", "Requests that the budget allowed.", query
        )
        self._degraded = self._counter(
            "degraded_answers", "Answers that had to do with last known values.", query
        )
        self._rejected = self._counter(
            "rejected_records", "Records of remotes left out.", ["query", "reason"]
        )
        self._replica = self._gauge("replica_keys", "Keys that the replica holds.", query)
        self._mean_age = self._gauge(
            "value_age_mean_seconds", "Mean age of the values last shown.", query
        )
        self._max_age = self._gauge(
            "value_age_max_seconds", "Age of the oldest value last shown.", query
        )

    def _make_query_metrics(self) -> None:
        self._queries = self._gauge("queries", "Queries that run.", [])
        self._states = self._counter("query_changes", "What became of queries.", ["state"])
        self._waiting = WaitingMetric()
        self.registry.register(self._waiting)
        self._errors = self._counter("errors", "Errors of streams, queries and sinks.", ["kind"])

    def watch(self, waiting: Callable[[], Mapping[str, Waiting]]) -> None:
        """Count the queries by the thing that they wait for, as the function says."""
        self._waiting.waiting = waiting

    def batch(self, seen: BatchSeen) -> None:
        """Count a batch."""
        stream = seen.stream
        self._events.labels(stream).inc(seen.events)
        self._late.labels(stream).inc(seen.late)
        self._repeated_messages.labels(stream).inc(seen.repeated)
        self._sent_rows.labels(stream).inc(seen.sent_rows)
        self._sent_bytes.labels(stream).inc(seen.sent_bytes)
        self._partitions.labels(stream).inc(seen.partitions)
        self._count_reasons(self._bad, self._bad_reasons, stream, seen.bad)
        self._batch.labels(stream).observe(seen.seconds)
        for phase, seconds in (
            ("reduce", seen.reduce_seconds),
            ("evaluate", seen.evaluate_seconds),
            ("commit", seen.commit_seconds),
        ):
            self._phase.labels(stream, phase).observe(seconds)
        if seen.watermark_ms is not None:
            self._show_watermark(stream, seen.watermark_ms / 1000)
        still = seen.standstill
        self._standstill.labels(stream).set(0.0 if still is None else still.seconds)
        if seen.backlog_bytes is not None:
            self._backlog.labels(stream).set(seen.backlog_bytes)
        if seen.done is not None and seen.total:
            self._read.labels(stream).set(seen.done / seen.total)

    def _show_watermark(self, stream: str, seconds: float) -> None:
        first = stream not in self._watermarks
        self._watermarks[stream] = seconds
        self._watermark.labels(stream).set(seconds)
        if first:
            # Computed at each scrape, as it grows while nothing comes.
            self._lag.labels(stream).set_function(lambda: self._wall() - self._watermarks[stream])

    def answer(self, seen: AnswerSeen) -> None:
        """Count an answer. Another process has counted the cost and latency of a repeated one."""
        answer, query = seen.answer, seen.answer.query
        self._candidates.labels(query).set(seen.candidates)
        self._panes.labels(query).set(seen.panes_waiting)
        self._replica.labels(query).set(seen.replica_keys)
        if seen.repeated:
            self._repeated.labels(query).inc()
            return
        self._answers.labels(query, str(answer.status)).inc()
        self._rows.labels(query).inc(len(answer.rows) or len(answer.triples))
        self._latency.labels(query).observe(answer.latency_seconds)
        self._skipped.labels(query).inc(answer.counts.skipped)
        if answer.expected is not None:
            self._precision.labels(query).set(answer.expected.precision)
            self._ndcg.labels(query).set(answer.expected.ndcg)
        self._count_refresh(seen)

    def _count_refresh(self, seen: AnswerSeen) -> None:
        answer, query = seen.answer, seen.answer.query
        spent, part = answer.spending.own, 1 / answer.spending.shared_by
        self._requests.labels(query).inc(spent.requests)
        self._items.labels(query).inc(spent.items)
        self._failures.labels(query).inc(spent.failed)
        self._waits.labels(query).inc(spent.seconds)
        self._allowed_items.labels(query).inc(answer.budget.items * part)
        self._allowed_requests.labels(query).inc(answer.budget.requests * part)
        self._degraded.labels(query).inc(answer.failure is not None)
        self._count_reasons(self._rejected, self._rejected_reasons, query, answer.counts.rejected)
        ages = seen.ages_seconds
        if ages:
            self._mean_age.labels(query).set(math.fsum(ages) / len(ages))
            self._max_age.labels(query).set(max(ages))

    def unanswered(self, window: Unanswered) -> None:
        """Count a window without an answer."""
        self._unanswered.labels(window.query, window.reason).inc()

    def kept(self, seen: StateSeen) -> None:
        """Count an operation on the state directory, and the time a write took."""
        self._kept.labels(seen.stream, str(seen.kind)).inc()
        if seen.kind in _WRITTEN:
            self._kept_bytes.labels(seen.stream, str(seen.kind)).inc(seen.bytes)
            self._kept_time.labels(seen.stream, str(seen.kind)).observe(seen.seconds)

    def query(self, name: str, state: QueryState) -> None:
        """Count running queries; remove the metrics of a removed query to keep them bounded."""
        self._states.labels(str(state)).inc()
        with self._lock:
            (self._running.add if state is QueryState.REGISTERED else self._running.discard)(name)
            self._queries.set(len(self._running))
        if state is QueryState.REMOVED:
            for metric in self._of_queries:
                metric.remove_by_labels({"query": name})
            with self._lock:
                self._rejected_reasons.forget(name)

    def failed(self, where: str, error: BaseException) -> None:
        """Count an error by the kind of its place: a stream, a query, a sink."""
        with self._lock:
            kind = self._kinds("", where.split(" ", 1)[0])
        self._errors.labels(kind).inc()

    def _count_reasons(
        self, counter: Counter, labels: BoundedLabels, of: str, reasons: Mapping[str, int]
    ) -> None:
        for reason, count in reasons.items():
            with self._lock:
                label = labels(of, reason)
            counter.labels(of, label).inc(count)

    def _counter(self, name: str, meaning: str, labels: Sequence[str]) -> Counter:
        return self._of(
            Counter(f"acquatop_{name}", meaning, labels, registry=self.registry), labels
        )

    def _gauge(self, name: str, meaning: str, labels: Sequence[str]) -> Gauge:
        return self._of(Gauge(f"acquatop_{name}", meaning, labels, registry=self.registry), labels)

    def _histogram(self, name: str, meaning: str, labels: Sequence[str]) -> Histogram:
        made = Histogram(
            f"acquatop_{name}", meaning, labels, registry=self.registry, buckets=_DURATIONS
        )
        return self._of(made, labels)

    def _of(self, metric: _Metric, labels: Sequence[str]) -> _Metric:
        if "query" in labels:
            self._of_queries.append(metric)
        return metric
